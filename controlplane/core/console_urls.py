"""Addresses of the console's pages, for messages and documents."""

from django.conf import settings


def console_url(path: str) -> str:
    """Return the address of a page; empty if the console's own address is not set."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{local_path(path)}" if settings.PUBLIC_URL else ""


def local_path(path: str) -> str:
    """Return the path if it is one of the console, else that of its first page.

    Browsers read `/\\` as `//`, which begins another host.
    """
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"
