"""Result of engaging or extending a switch, and of similar changes."""

from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.core.approvals.models import Approval
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


def shorten_for_override(expiry: Expiry, now: datetime) -> Expiry:
    """Return the expiry that an override of safety rules allows: at most 4 hours, policy `hold`."""
    return replace(
        expiry,
        expires_at=min(expiry.expires_at, now + break_glass.MAX_DURATION),
        permanent_requested=False,
        on_expiry=OnExpiry.HOLD.value,
    )
