"""Texts about episodes for screens: the next change, and how an episode ended."""

from dataclasses import dataclass
from datetime import datetime

from switches.models import Episode, OnExpiry

EXPIRY_EFFECTS = {
    OnExpiry.HOLD.value: "it stays engaged, overdue",
    OnExpiry.RAMP.value: "traffic returns in steps",
    OnExpiry.RELEASE.value: "all traffic returns",
}
END_WORDS = {
    Episode.End.RELEASED.value: "released",
    Episode.End.EXPIRED.value: "released by expiry",
    Episode.End.UNDONE.value: "undone",
}


@dataclass(frozen=True)
class NextChange:
    """The next change of an open episode for its switch's page.

    `detail` precedes the time `at`, and `note` follows it. `is_late` is True if `at` has passed.
    """

    label: str
    title: str
    detail: str
    at: datetime | None = None
    note: str = ""
    is_late: bool = False


def describe_next(episode: Episode, now: datetime, *, is_reengaging: bool) -> NextChange:
    """Return the next change of an open episode.

    `is_reengaging` is True while a failed ramp could not engage the switch again.
    """
    if is_reengaging:
        return NextChange("Next", "Engaged again", "retried until it succeeds")
    if episode.overdue:
        return NextChange("Next", "Stays engaged", "until someone extends or releases it")
    if episode.allow_percent:
        return NextChange("When the ramp ends", "Released", "after its last step passes")
    if episode.permanent:
        return _describe_reconfirmation(episode, now)
    title, detail = {
        OnExpiry.HOLD.value: ("Hold", "stays engaged, overdue; people are notified"),
        OnExpiry.RAMP.value: ("Ramp", "traffic returns in steps"),
        OnExpiry.RELEASE.value: ("Release", "all traffic returns at once"),
    }[episode.on_expiry]
    return NextChange("When it expires", title, detail)


def _describe_reconfirmation(episode: Episode, now: datetime) -> NextChange:
    label, due_at = "Re-confirmation", episode.reconfirm_due_at
    if due_at is None:
        return NextChange(label, "Weekly", "the first date is not set yet")
    if due_at <= now:
        note = "stays engaged; people are notified"
        return NextChange(label, "Overdue", "was due", due_at, note, is_late=True)
    last = f"last by {episode.reconfirmed_by}" if episode.reconfirmed_at else ""
    return NextChange(label, "Due", "by", due_at, last)
