"""What to do when something is wrong: pages written beforehand, found by what they are about."""

from .library import about, address, path

__all__ = ["about", "address", "path"]
