"""Functions that change the registry and overrides."""
