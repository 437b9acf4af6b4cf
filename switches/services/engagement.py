"""Result of engaging or extending a switch, and of similar changes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval
from switches import reminders
from switches.expiry import Expiry
from switches.models import Episode, OnExpiry, Switch
from switches.rules import break_glass


@dataclass(frozen=True)
class Engagement:
    """A switch and its open episode after a change, with the requested approval, if any.

    `review` is the open review of a safety rule's override. `notice` says how the result differs
    from the request.
    """

    switch: Switch
    episode: Episode
    approval: Approval | None = None
    review: Approval | None = None
    notice: str = ""


def engagement_fields(
    reason: str, evidence: Mapping[str, Any] | None, expiry: Expiry, actor: Actor, now: datetime
) -> dict[str, Any]:
    """Return the fields that an engage sets in a new episode, or in that of a ramping switch."""
    return {
        "reason": reason.strip(),
        "evidence": dict(evidence) if evidence is not None else None,
        "engaged_by_type": actor.type,
        "engaged_by_name": actor.name,
        "engaged_by_id": actor.user_id,
        "engaged_by_identity": actor.identity,
        "expires_at": expiry.expires_at,
        "on_expiry": expiry.on_expiry,
        **reminders.skipped_reminders(expiry.expires_at, now),
    }


def shorten_for_override(expiry: Expiry, now: datetime) -> Expiry:
    """Return the expiry that an override of safety rules allows: at most 4 hours, policy `hold`."""
    return replace(
        expiry,
        expires_at=min(expiry.expires_at, now + break_glass.MAX_DURATION),
        permanent_requested=False,
        on_expiry=OnExpiry.HOLD.value,
    )
