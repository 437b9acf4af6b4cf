"""URLs of the console's pages."""

DOCUMENTATION_PATH = "/docs/"
"""Path of the documentation, which the web process serves without Django."""
SCIM_ROOT = "/scim/"
"""Start of the paths of SCIM, by which identity providers provision people and groups."""


def console_url(path: str) -> str:
    """Return the absolute URL of a page, or "" if PUBLIC_URL is not set."""
    # Imported here, because the stand-in server during startup uses this module without Django.
    from django.conf import settings

    return f"{settings.PUBLIC_URL.rstrip('/')}{local_path(path)}" if settings.PUBLIC_URL else ""


def local_path(path: str) -> str:
    """Return a path to redirect to: `/` if the given one could lead to another host (`//host`)."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"
