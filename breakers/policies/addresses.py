"""Which addresses may be registered: a runbook's, and one that is asked for an answer. Pure."""

from urllib.parse import SplitResult, urlsplit

WEB = frozenset({"http", "https"})


def web_problem(url: str) -> str:
    """What is wrong with a page's address, or nothing. Many a runbook is at `https://wiki/…`,
    without a dot in the host."""
    parts = _parts(url)
    return (
        "" if parts and parts.scheme in WEB else "Must be a URL starting with http:// or https://."
    )


def probe_problem(url: str) -> str:
    """What is wrong with an address to ask, or nothing: `tcp://host:port` or a page's."""
    parts = _parts(url)
    if parts is None or parts.scheme not in WEB | {"tcp"}:
        return "Must be tcp://host:port, http://… or https://…."
    if parts.username or parts.password:
        return "Leave out user and password: everybody who looks at the service sees this."
    if parts.scheme == "tcp" and (parts.port is None or parts.path or parts.query):
        return "Must be tcp://host:port, and nothing more."
    return ""


def _parts(url: str) -> SplitResult | None:
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if named else None
