"""Jobs: persistent multi-step work with leases, checkpoints, retries and compensation."""
