"""URLs of the console's pages."""

from django.conf import settings


def console_url(path: str) -> str:
    """Return the absolute URL of a page, or "" if PUBLIC_URL is not set."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{local_path(path)}" if settings.PUBLIC_URL else ""


def local_path(path: str) -> str:
    r"""Return the path if it is local, else `/`; `/\\` isn't, as browsers read it as `//`."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"
