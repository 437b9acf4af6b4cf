"""Services that change the registry and overrides."""
