"""Readable names of user agents. Pure."""

# The first match counts, because most user agents contain the names of other browsers too.
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


def name_device(user_agent: str) -> str:
    """Return a name such as `Firefox on Linux`, with the recognized parts only."""
    browser = _find_first(BROWSERS, user_agent) or "A browser"
    system = _find_first(SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _find_first(words: tuple[tuple[str, str], ...], text: str) -> str:
    return next((word for part, word in words if part in text), "")
