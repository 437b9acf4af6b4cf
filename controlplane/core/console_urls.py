"""Addresses of the console's pages, for messages and documents."""

from django.conf import settings


def console_url(path: str) -> str:
    """Return the address of a page; empty if the console's own address is not set."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{local_path(path)}" if settings.PUBLIC_URL else ""


def local_path(path: str) -> str:
    r"""Return the path if it is local to the console, else the first page's.

    Browsers read `/\` as `//`, which starts another host.
    """
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"
