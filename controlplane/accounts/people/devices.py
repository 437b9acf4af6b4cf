"""Readable names for browsers' user agents. Pure."""

# The first that is found counts: nearly every browser claims to be several others as well.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEMS = (
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "a Mac"),
    ("Linux", "Linux"),
)


def named(user_agent: str) -> str:
    """Return a name such as `Firefox on Linux`, as far as it can be recognized."""
    browser = _first(BROWSERS, user_agent) or "A browser"
    system = _first(SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _first(words: tuple[tuple[str, str], ...], text: str) -> str:
    return next((word for part, word in words if part in text), "")
