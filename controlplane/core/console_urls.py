"""URLs of the console's pages."""

from django.conf import settings


def console_url(path: str) -> str:
    """Return the absolute URL of a page, or "" if PUBLIC_URL is not set."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{local_path(path)}" if settings.PUBLIC_URL else ""


def local_path(path: str) -> str:
    r"""Return the path, or `/` if it could lead to another host, such as `//host` or `/\host`."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"
