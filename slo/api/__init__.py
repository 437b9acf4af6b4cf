"""The HTTP API of SLOs."""
