"""What engaging did, and how short an engagement against a rule is."""

from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.core.approvals.models import Approval
from switches.expiry import Expiry
from switches.models import Episode, OnExpiry, Switch
from switches.rules import glass


@dataclass(frozen=True)
class Engagement:
    """What engaging did: the switch, its episode, and an approval that was asked for.

    `review` is what somebody else has to sign, if a rule was overridden. `notice` tells what is
    otherwise than was asked.
    """

    switch: Switch
    episode: Episode
    approval: Approval | None = None
    review: Approval | None = None
    notice: str = ""


def shortened(expiry: Expiry, now: datetime) -> Expiry:
    """Against a rule it is engaged for a few hours and then held, whatever was asked."""
    return replace(
        expiry,
        expires_at=min(expiry.expires_at, now + glass.MAX_DURATION),
        permanent_requested=False,
        on_expiry=OnExpiry.HOLD.value,
    )
