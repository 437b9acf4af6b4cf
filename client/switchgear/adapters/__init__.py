"""Adapters for other libraries. Each module imports its library."""
