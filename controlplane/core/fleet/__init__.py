"""The fleet: every data plane and relay that serves services, as it last reported itself."""
