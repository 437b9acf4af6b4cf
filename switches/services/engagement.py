"""Result of engage, extend and similar services."""

from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.core.approvals.models import Approval
from switches.expiry import Expiry
from switches.models import Episode, OnExpiry, Switch
from switches.rules import break_glass


@dataclass(frozen=True)
class Engagement:
    """A switch and its episode after a service, with the requested approval, if any.

    `review` is the open review of an overridden rule. `notice` says how the result differs from
    the request.
    """

    switch: Switch
    episode: Episode
    approval: Approval | None = None
    review: Approval | None = None
    notice: str = ""


def shorten_for_override(expiry: Expiry, now: datetime) -> Expiry:
    """Return the expiry limited to 4 hours with the policy `hold`, as after an override."""
    return replace(
        expiry,
        expires_at=min(expiry.expires_at, now + break_glass.MAX_DURATION),
        permanent_requested=False,
        on_expiry=OnExpiry.HOLD.value,
    )
