"""Conversion of PromQL of other SLO tools to queries of counters, without rates. Pure."""

import re

SELECTOR = (
    r'[a-zA-Z_:][a-zA-Z0-9_:]*(?:\s*\{(?:[^{}"\']|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')*\})?'
)
_WINDOW = r"\[\s*\{\{-?\s*\.window\s*-?\}\}\s*\]"
_RATE = re.compile(rf"\b(?:rate|increase|irate)\s*\(\s*({SELECTOR})\s*{_WINDOW}\s*\)")
_WHOLE_SELECTOR = re.compile(rf"\s*({SELECTOR})\s*")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')


def remove_rates(query: str) -> str | None:
    """Return a query of rates over `{{.window}}` as one of the counters themselves.

    The sum of the rates of counters becomes the sum of the counters. Return None if anything but
    `rate(…)` and `increase(…)` of a counter has a range or the template variable.
    """
    counters, count = _RATE.subn(r"\1", query.strip())
    rest = _STRING.sub('""', counters)
    if not count or "{{" in rest or "[" in rest or "/" in rest:
        return None
    return " ".join(counters.split())


def parse_selector(text: str) -> str | None:
    """Return the selector of a metric without spaces around it; None if the text is more."""
    match = _WHOLE_SELECTOR.fullmatch(text)
    return match[1] if match else None


def subtract_errors(total: str, errors: str) -> str:
    """Return the query of good events; the counter of errors may not exist until the first one."""
    return f"({total}) - (({errors}) or vector(0))"
