"""Readable names of browsers and systems, from user agent strings."""

# By a part of the user agent. The first match counts: most contain names of other browsers, too.
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
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "a Mac"),
    ("Linux", "Linux"),
)


def name_device(user_agent: str) -> str:
    """Return a browser and system name such as `Firefox on Linux`, without unrecognized parts."""
    browser = next((name for part, name in BROWSERS if part in user_agent), "A browser")
    system = next((name for part, name in SYSTEMS if part in user_agent), "")
    return f"{browser} on {system}" if system else browser
