"""Switches that are stopped right now, read by one query for the banner of every page."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Aggregate, Count, Max, Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Coalesce

from controlplane.core.approvals.models import Approval
from controlplane.core.compiled_query import fetch_first
from controlplane.core.jobs.models import Job
from switches.models import Episode, Ramp
from switches.scopes import GLOBAL_ID

_IS_GLOBAL = Q(switch_id=GLOBAL_ID)
_IS_BROKEN = Q(broke_glass__isnull=False)


_DID = {"engage": "engaged", "extend": "extended", "release": "released"}


def _of_the_glass(key: str) -> Coalesce:
    """What an episode keeps of glass: of its release, if that broke some, else of the engaging."""
    released = KeyTransform("release", "broke_glass")
    return Coalesce(KeyTextTransform(key, released), KeyTextTransform(key, "broke_glass"))


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
    """Read the standing, by one statement."""
    found = fetch_first(now, _episodes, _approvals, _ramps)
    reviews = found["reviews"]
    return Standing(
        now=now,
        engaged=found["engaged"],
        ramping=found["ramping"],
        overdue=found["overdue"],
        everything=_everything(found),
        broken=_broken(found, reviews),
        approvals=found["approvals"] + reviews if with_approvals else 0,
        ramps=found["live"],
        failed_ramps=_failed(found),
    )


def _episodes(_now: Any) -> QuerySet[Episode, Any]:
    """At most one episode of the global switch is open, so its maxima are it."""
    return _aggregate(
        Episode.objects.filter(ended_at__isnull=True),
        engaged=Count("pk", filter=Q(allow_percent=0)),
        ramping=Count("pk", filter=Q(allow_percent__gt=0)),
        overdue=Count("pk", filter=Q(overdue_at__isnull=False)),
        reason=Max("reason", filter=_IS_GLOBAL),
        by=Max("engaged_by_name", filter=_IS_GLOBAL),
        since=Max("engaged_at", filter=_IS_GLOBAL),
        until=Max("expires_at", filter=_IS_GLOBAL),
        percent=Max("allow_percent", filter=_IS_GLOBAL),
        late=Max("overdue_at", filter=_IS_GLOBAL),
        broken=Count("pk", filter=_IS_BROKEN),
        broken_switch=Max("switch_id", filter=_IS_BROKEN),
        broken_rule=Max(_of_the_glass("rule"), filter=_IS_BROKEN),
        broken_reason=Max(_of_the_glass("reason"), filter=_IS_BROKEN),
        broken_at=Max(_of_the_glass("at"), filter=_IS_BROKEN),
        broken_by=Max(_of_the_glass("by"), filter=_IS_BROKEN),
        broken_engaged_by=Max("engaged_by_name", filter=_IS_BROKEN),
    )


def _approvals(now: Any) -> QuerySet[Approval, Any]:
    return _aggregate(
        Approval.objects.filter(state="pending"),
        approvals=Count("pk", filter=Q(expires_at__gt=now)),
        reviews=Count("pk", filter=Q(kind=Approval.Kind.BREAK_GLASS_REVIEW)),
    )


def _ramps(_now: Any) -> QuerySet[Ramp, Any]:
    """A ramp is live for as long as it is not over: there are never many."""
    failed = Q(job__state=Job.State.FAILED)
    return _aggregate(
        Ramp.objects.filter(live=True),
        live=Count("pk"),
        failed=Count("pk", filter=failed),
        failed_ramp=Max("pk", filter=failed),
        failed_switch=Max("switch_id", filter=failed),
        failed_why=Max("job__outcome", filter=failed),
    )


def _aggregate(rows: QuerySet[Any, Any], **figures: Aggregate) -> QuerySet[Any, Any]:
    """Return a queryset of one row, with these figures of all rows."""
    whole: QuerySet[Any, Any] = rows.order_by().annotate(whole=Value(1)).values("whole")
    found: QuerySet[Any, Any] = whole.annotate(**figures).values_list(*figures)
    return found


def _failed(ramps: dict[str, Any]) -> NotTakenBack | None:
    if not ramps["failed"]:
        return None
    return NotTakenBack(
        ramps["failed"], ramps["failed_ramp"], ramps["failed_switch"], ramps["failed_why"]
    )


def _broken(found: dict[str, Any], reviews: int) -> Broken | None:
    broken = found["broken"]
    if not broken and not reviews:
        return None
    if broken != 1:
        return Broken(broken, reviews)
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
