"""Normalization of what a monitor sends: reason, duration and evidence."""

import unicodedata
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from controlplane.core import canonical, durations, reasons

MAX_TEXT_LENGTHS = (4000, 1000, 200, 40)
PERMANENT = "permanent"
NO_CAP_MINUTES = durations.MAX_DURATION.days * 24 * 60


def clean_text(text: str) -> str:
    """Return the text on one line, without control and bidirectional override characters."""
    characters = (
        " "
        if unicodedata.category(character) in {"Cc", "Cs"} or character in "\u202d\u202e"
        else character
        for character in text
    )
    return " ".join("".join(characters).split())


def complete_reason(raw: str, *, source: str, fingerprint: str) -> str:
    """Return the monitor's reason; a short or vague one is prefixed with source and fingerprint."""
    text = clip(clean_text(raw), reasons.MAX_CHARACTERS)
    if not reasons.find_reason_problems(text):
        return text
    prefix = f"Tripped by {clean_text(source)} (fingerprint {clean_text(fingerprint)})"
    return clip(f"{prefix}: {text}" if text else prefix, reasons.MAX_CHARACTERS)


def cap_expiry(expires_in: str, longest_minutes: int) -> str:
    """Return `expires_in`, at most the policy's limit; raise ValueError for an invalid duration."""
    if expires_in.strip().casefold() == PERMANENT:
        raise ValueError("Trips can't be permanent. Use a duration such as 1h.")
    longest = timedelta(minutes=longest_minutes)
    return durations.format_canonical(min(durations.parse(expires_in), longest))


def evidence_bytes(evidence: Mapping[str, Any]) -> int:
    return len(canonical.dumps(evidence))


def fit_evidence(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return evidence cut to the size limit: with shortened texts, or with its keys only."""
    if evidence_bytes(evidence) <= canonical.MAX_EVIDENCE_BYTES:
        return dict(evidence)
    for longest in MAX_TEXT_LENGTHS:
        shorter: dict[str, Any] = {**_shorten_texts(evidence, longest), "shortened": True}
        if evidence_bytes(shorter) <= canonical.MAX_EVIDENCE_BYTES:
            return shorter
    return {"shortened": True, "parts": [clip(str(name), 40) for name in list(evidence)[:50]]}


def clip(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _shorten_texts(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return clip(value, longest)
    if isinstance(value, Mapping):
        return {clip(str(k), 200): _shorten_texts(v, longest) for k, v in value.items()}
    if isinstance(value, list):
        return [_shorten_texts(item, longest) for item in value]
    return value
