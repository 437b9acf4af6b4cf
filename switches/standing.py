"""What stands stopped right now, in one query: what every page says above everything else."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from switches.evaluate import GLOBAL_ID

_DID = {"engage": "engaged", "extend": "extended", "release": "released"}
# Every page runs this: Django takes several times longer to compile it than PostgreSQL to answer.
# What an episode keeps of glass: of its release, if that broke some, else of the engaging. A ramp
# is live for as long as it is not over: there are never many.
_STANDING = """
WITH open_episodes AS (
  SELECT *, switch_id = %(everything)s AS is_global, broke_glass IS NOT NULL AS is_broken,
    coalesce(broke_glass #>> '{release,rule}', broke_glass ->> 'rule') AS rule,
    coalesce(broke_glass #>> '{release,reason}', broke_glass ->> 'reason') AS glass_reason,
    coalesce(broke_glass #>> '{release,at}', broke_glass ->> 'at') AS at,
    coalesce(broke_glass #>> '{release,by}', broke_glass ->> 'by') AS glass_by
  FROM switches_episode WHERE ended_at IS NULL
), stopped AS (
  SELECT count(*) FILTER (WHERE allow_percent = 0) AS engaged,
    count(*) FILTER (WHERE allow_percent > 0) AS ramping,
    count(overdue_at) AS overdue,
    max(reason) FILTER (WHERE is_global) AS reason,
    max(engaged_by_name) FILTER (WHERE is_global) AS by,
    max(engaged_at) FILTER (WHERE is_global) AS since,
    max(expires_at) FILTER (WHERE is_global) AS until,
    max(allow_percent) FILTER (WHERE is_global) AS percent,
    max(overdue_at) FILTER (WHERE is_global) AS late,
    count(*) FILTER (WHERE is_broken) AS broken,
    max(switch_id) FILTER (WHERE is_broken) AS broken_switch,
    max(rule) FILTER (WHERE is_broken) AS broken_rule,
    max(glass_reason) FILTER (WHERE is_broken) AS broken_reason,
    max(at) FILTER (WHERE is_broken) AS broken_at,
    max(glass_by) FILTER (WHERE is_broken) AS broken_by,
    max(engaged_by_name) FILTER (WHERE is_broken) AS broken_engaged_by
  FROM open_episodes
), waiting AS (
  SELECT count(*) FILTER (WHERE expires_at > %(now)s) AS approvals,
    count(*) FILTER (WHERE kind = 'break_glass_review') AS reviews
  FROM core_approval WHERE state = 'pending'
), ramps AS (
  SELECT count(*) AS live, count(*) FILTER (WHERE job.state = 'failed') AS failed,
    max(ramp.job_id) FILTER (WHERE job.state = 'failed') AS failed_ramp,
    max(ramp.switch_id) FILTER (WHERE job.state = 'failed') AS failed_switch,
    max(job.outcome) FILTER (WHERE job.state = 'failed') AS failed_why
  FROM switches_ramp ramp JOIN core_job job ON job.id = ramp.job_id WHERE ramp.live
)
SELECT * FROM stopped, waiting, ramps
"""


@dataclass(frozen=True)
class Everything:
    """The open episode of the global switch."""

    reason: str
    engaged_by_name: str
    engaged_at: datetime
    expires_at: datetime | None
    allow_percent: Decimal
    overdue: bool

    @property
    def condition(self) -> str:
        if self.overdue:
            return "overdue"
        return "ramping" if self.allow_percent else "engaged"


@dataclass(frozen=True)
class Broken:
    """Glass that is broken: switches engaged or being released against a rule, and reviews nobody
    has signed.

    With one such switch, it is named with the rule, why it had to yield, and what was done by whom;
    `by` is empty if nobody noted who.
    """

    engaged: int
    reviews: int
    switch: str = ""
    rule: str = ""
    reason: str = ""
    by: str = ""
    did: str = "engaged"


@dataclass(frozen=True)
class NotTakenBack:
    """Ramps that went wrong and could not be engaged again: one of them is named, with why."""

    count: int
    ramp: int
    switch: str
    why: str


@dataclass(frozen=True)
class Standing:
    """How many switches are engaged, ramping and overdue, and whether everything is stopped.

    `ramps` are those under way or waiting for approval. `known` is False when the database could
    not say.
    """

    now: datetime
    engaged: int = 0
    ramping: int = 0
    overdue: int = 0
    everything: Everything | None = None
    broken: Broken | None = None
    approvals: int = 0
    ramps: int = 0
    failed_ramps: NotTakenBack | None = None
    known: bool = True

    @property
    def stopped(self) -> int:
        return self.engaged + self.ramping


def look(now: datetime, *, with_approvals: bool) -> Standing:
    """Read the standing. At most one episode of the global switch is open, so its maxima are it."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, {"now": now, "everything": GLOBAL_ID})
        row = cursor.fetchone()
        found: dict[str, Any] = dict(
            zip([column.name for column in cursor.description], row, strict=True)
        )
    return Standing(
        now=now,
        engaged=found["engaged"],
        ramping=found["ramping"],
        overdue=found["overdue"],
        everything=_everything(found),
        broken=_broken(found),
        approvals=found["approvals"] + found["reviews"] if with_approvals else 0,
        ramps=found["live"],
        failed_ramps=_failed(found),
    )


def _failed(found: dict[str, Any]) -> NotTakenBack | None:
    if not found["failed"]:
        return None
    return NotTakenBack(
        found["failed"], found["failed_ramp"], found["failed_switch"], found["failed_why"]
    )


def _broken(found: dict[str, Any]) -> Broken | None:
    reviews = found["reviews"]
    if not found["broken"] and not reviews:
        return None
    if found["broken"] != 1:
        return Broken(found["broken"], reviews)
    did = _DID.get(found["broken_at"] or "", "engaged")
    by = found["broken_by"] or (found["broken_engaged_by"] if did == "engaged" else "")
    return Broken(
        engaged=1,
        reviews=reviews,
        switch=found["broken_switch"],
        rule=found["broken_rule"] or "",
        reason=found["broken_reason"] or "",
        by=by,
        did=did,
    )


def _everything(found: dict[str, Any]) -> Everything | None:
    if found["since"] is None:
        return None
    return Everything(
        reason=found["reason"],
        engaged_by_name=found["by"],
        engaged_at=found["since"],
        expires_at=found["until"],
        allow_percent=found["percent"],
        overdue=found["late"] is not None,
    )
