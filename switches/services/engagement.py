"""The result of engaging, and the limit of one against a rule."""

from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.core.approvals.models import Approval
from switches.expiry import Expiry
from switches.models import Episode, OnExpiry, Switch
from switches.rules import break_glass


@dataclass(frozen=True)
class Engagement:
    """The result of engaging: the switch, its episode, and an approval that was requested.

    `review` is what another person has to sign, if a rule was overridden. `notice` explains any
    difference from what was asked.
    """

    switch: Switch
    episode: Episode
    approval: Approval | None = None
    review: Approval | None = None
    notice: str = ""


def shorten_for_override(expiry: Expiry, now: datetime) -> Expiry:
    """Return the expiry of an episode against a rule: a few hours, and then held."""
    return replace(
        expiry,
        expires_at=min(expiry.expires_at, now + break_glass.MAX_DURATION),
        permanent_requested=False,
        on_expiry=OnExpiry.HOLD.value,
    )
