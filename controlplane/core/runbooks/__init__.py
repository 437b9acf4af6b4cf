"""Runbooks: instructions for known kinds of problems, chosen by patterns of their alerts."""

from .library import find_slug, link_address, page_path

__all__ = ["find_slug", "link_address", "page_path"]
