"""The data plane's own queries."""
