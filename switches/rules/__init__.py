"""Safety rules across switches: limits on which switches are engaged or released together."""
