"""Turning what a monitor says into what an episode needs: a reason, a time, bounded evidence. Pure.

A trip is never lost because an alert's text is short: the reason is made whole with its source.
"""

import unicodedata
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from controlplane.core import canonical, durations, reasons

MAX_TEXT_LENGTHS = (4000, 1000, 200, 40)
PERMANENT = "permanent"
NO_CAP = durations.MAX_DURATION.days * 24 * 60  # minutes


def readable(text: str) -> str:
    """The text without control characters and the marks that make it read other than it is."""
    kept = (" " if _unwanted(character) else character for character in text)
    return " ".join("".join(kept).split())


def fingerprint(text: str) -> str:
    """A fingerprint as it is kept and looked for, whoever sends it."""
    return readable(text)


def reason(said: str, *, source: str, fingerprint: str) -> str:
    """A reason that the next person can act on: as it was said if that will do, else completed."""
    text = clipped(readable(said), reasons.MAX_CHARACTERS)
    if not reasons.problems_with(text):
        return text
    told = f"Tripped by {readable(source)} (fingerprint {readable(fingerprint)})"
    return clipped(f"{told}: {text}" if text else told, reasons.MAX_CHARACTERS)


def expiry(expires_in: str, longest_minutes: int) -> str:
    """`expires_in`, capped by what the policy allows; raises ValueError for what is no duration."""
    if expires_in.strip().casefold() == PERMANENT:
        raise ValueError("A machine never engages for good: give a duration such as 1h.")
    longest = timedelta(minutes=longest_minutes)
    return durations.canonical(min(durations.parse(expires_in), longest))


def size(evidence: Mapping[str, Any]) -> int:
    """Bytes, as they are kept."""
    return len(canonical.dumps(evidence))


def fitting(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence with its texts shortened until it fits; at worst only the names of its parts."""
    if size(evidence) <= canonical.MAX_EVIDENCE_BYTES:
        return dict(evidence)
    for longest in MAX_TEXT_LENGTHS:
        shorter: dict[str, Any] = {**_shortened(evidence, longest), "shortened": True}
        if size(shorter) <= canonical.MAX_EVIDENCE_BYTES:
            return shorter
    return {"shortened": True, "parts": [clipped(str(name), 40) for name in list(evidence)[:50]]}


def clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return clipped(value, longest)
    if isinstance(value, Mapping):
        return {clipped(str(k), 200): _shortened(v, longest) for k, v in value.items()}
    if isinstance(value, list):
        return [_shortened(one, longest) for one in value]
    return value


def _unwanted(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs"} or character in "\u202d\u202e"
