"""Safety rules across switches: limits on which may be engaged or released together."""
