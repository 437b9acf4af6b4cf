"""Runbooks: instructions for known kinds of problems, found by alert."""

from .library import find_slug, link_address, page_path

__all__ = ["find_slug", "link_address", "page_path"]
