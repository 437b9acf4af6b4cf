"""Runbooks: instructions for known kinds of trouble, found by the alert they are about."""

from .library import about, address, path

__all__ = ["about", "address", "path"]
