"""Validation of a machine's request to engage a switch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.core import canonical, reasons
from controlplane.core.errors import InvalidInput
from switches.services.registration import identify

from . import texts

MAX_LENGTHS = {"source": 120, "fingerprint": 200}
MAX_REASON_LENGTH = 20_000  # As sent; the stored reason is shortened.
DEFAULT_EXPIRY = "1h"


@dataclass(frozen=True)
class StopRequest:
    """A validated trip request; `expires_in` is not capped by the policy yet."""

    switch: str
    source: str
    fingerprint: str
    reason: str
    evidence: dict[str, Any]
    expires_in: str


def validate_request(
    switch: str,
    source: str,
    fingerprint: str,
    reason: str,
    evidence: Mapping[str, Any] | None,
    expires_in: str | None,
) -> StopRequest:
    """Return the valid trip request with its reason completed, or raise :class:`InvalidInput`."""
    errors: dict[str, list[str]] = {}
    try:
        identify(*switch.partition(":")[::2])
    except InvalidInput as error:
        errors["switch"] = [text for texts in error.errors.values() for text in texts]
    for name, text in (("source", source), ("fingerprint", fingerprint)):
        if not texts.clean_text(text):
            errors[name] = ["Must not be empty."]
        elif len(text) > MAX_LENGTHS[name]:
            errors[name] = [f"At most {MAX_LENGTHS[name]} characters."]
    if not texts.clean_text(reason) or not reasons.count_columns(reason):
        errors["reason"] = [f"A reason is required. {reasons.STOP_ADVICE}"]
    elif len(reason) > MAX_REASON_LENGTH:
        errors["reason"] = [
            f"At most {MAX_REASON_LENGTH:,} characters; put the rest in the evidence."
        ]
    if evidence is not None and texts.evidence_bytes(evidence) > canonical.MAX_EVIDENCE_BYTES:
        errors["evidence"] = [
            f"At most {canonical.MAX_EVIDENCE_BYTES // 1024} KiB; link to the rest."
        ]
    try:
        texts.cap_expiry(expires_in or DEFAULT_EXPIRY, texts.NO_CAP_MINUTES)
    except ValueError as error:
        errors["expires_in"] = [str(error)]
    if errors:
        raise InvalidInput(errors)
    source, fingerprint = texts.clean_text(source), texts.clean_text(fingerprint)
    full_reason = texts.complete_reason(reason, source=source, fingerprint=fingerprint)
    return StopRequest(
        switch, source, fingerprint, full_reason, dict(evidence or {}), expires_in or DEFAULT_EXPIRY
    )
