"""Summary of all stopped switches for every page's banner, read in one query."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.models import Aggregate, Count, Max, Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from controlplane.core.approvals.models import Approval
from controlplane.core.authority import may_approve_in_a_team
from controlplane.core.compiled_query import fetch_first
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs.models import Job

from .models import Episode, Ramp
from .scopes import GLOBAL_ID

_IS_GLOBAL = Q(switch_id=GLOBAL_ID)
_IS_BROKEN = Q(broke_glass__isnull=False)
_DID = {"engage": "engaged", "extend": "extended", "release": "released"}


def _broken_glass_field(key: str) -> Coalesce:
    released = KeyTransform("release", "broke_glass")
    return Coalesce(KeyTextTransform(key, released), KeyTextTransform(key, "broke_glass"))


@dataclass(frozen=True)
class GlobalStop:
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
class BrokenGlass:
    """Counts of episodes that override a safety rule, and of unsigned reviews.

    If there is exactly one such episode, the other fields describe it; `by` is empty if unknown.
    """

    engaged: int
    reviews: int
    switch: str = ""
    rule: str = ""
    reason: str = ""
    by: str = ""
    did: str = "engaged"


@dataclass(frozen=True)
class FailedRamps:
    """The number of ramps whose compensation failed, and one of them with the reason."""

    count: int
    ramp: int
    switch: str
    why: str


@dataclass(frozen=True)
class StatusSummary:
    """Counts of engaged, ramping and overdue switches, and the global stop.

    `ramps` counts live ramps and those waiting for approval. `known` is False if the database
    is unavailable.
    """

    now: datetime
    engaged: int = 0
    ramping: int = 0
    overdue: int = 0
    everything: GlobalStop | None = None
    broken: BrokenGlass | None = None
    approvals: int = 0
    ramps: int = 0
    failed_ramps: FailedRamps | None = None
    known: bool = True

    @property
    def stopped(self) -> int:
        return self.engaged + self.ramping


def read_summary(now: datetime, *, decides: Callable[[], bool]) -> StatusSummary:
    """Return the summary; it counts approvals if the user `decides` on any."""
    found = fetch_first(now, _aggregate_episodes, _aggregate_approvals, _aggregate_ramps)
    everything, failed_ramps = None, None
    waiting = found["approvals"] + found["reviews"]
    if found["since"] is not None:
        everything = GlobalStop(
            reason=found["reason"],
            engaged_by_name=found["by"],
            engaged_at=found["since"],
            expires_at=found["until"],
            allow_percent=found["percent"],
            overdue=found["late"] is not None,
        )
    if found["failed"]:
        failed_ramps = FailedRamps(
            found["failed"], found["failed_ramp"], found["failed_switch"], found["failed_why"]
        )
    return StatusSummary(
        now=now,
        engaged=found["engaged"],
        ramping=found["ramping"],
        overdue=found["overdue"],
        everything=everything,
        broken=_get_broken_glass(found),
        approvals=waiting if waiting and decides() else 0,
        ramps=found["live"],
        failed_ramps=failed_ramps,
    )


def banner(request: HttpRequest) -> dict[str, object]:
    """Context processor: return `standing`, a :class:`StatusSummary` that is read at first use."""

    def read_status() -> StatusSummary:
        now = timezone.now()
        try:
            user = request.user
            if not user.is_authenticated:
                return StatusSummary(now)
            return read_summary(
                now, decides=lambda: user.may_approve or may_approve_in_a_team(actor_of(request))
            )
        except (DatabaseError, InterfaceError):
            return StatusSummary(now, known=False)

    return {"standing": SimpleLazyObject(read_status)}


def _aggregate_episodes(_now: Any) -> QuerySet[Episode, Any]:
    return _aggregate_rows(
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
        broken_rule=Max(_broken_glass_field("rule"), filter=_IS_BROKEN),
        broken_reason=Max(_broken_glass_field("reason"), filter=_IS_BROKEN),
        broken_at=Max(_broken_glass_field("at"), filter=_IS_BROKEN),
        broken_by=Max(_broken_glass_field("by"), filter=_IS_BROKEN),
        broken_engaged_by=Max("engaged_by_name", filter=_IS_BROKEN),
    )


def _aggregate_approvals(now: Any) -> QuerySet[Approval, Any]:
    return _aggregate_rows(
        Approval.objects.filter(state="pending"),
        approvals=Count("pk", filter=Q(expires_at__gt=now)),
        reviews=Count("pk", filter=Q(kind=Approval.Kind.BREAK_GLASS_REVIEW)),
    )


def _aggregate_ramps(_now: Any) -> QuerySet[Ramp, Any]:
    failed = Q(job__state=Job.State.FAILED)
    return _aggregate_rows(
        Ramp.objects.filter(live=True),
        live=Count("pk"),
        failed=Count("pk", filter=failed),
        failed_ramp=Max("pk", filter=failed),
        failed_switch=Max("switch_id", filter=failed),
        failed_why=Max("job__outcome", filter=failed),
    )


def _aggregate_rows(rows: QuerySet[Any, Any], **figures: Aggregate) -> QuerySet[Any, Any]:
    whole: QuerySet[Any, Any] = rows.order_by().annotate(whole=Value(1)).values("whole")
    found: QuerySet[Any, Any] = whole.annotate(**figures).values_list(*figures)
    return found


def _get_broken_glass(row: dict[str, Any]) -> BrokenGlass | None:
    broken, reviews = row["broken"], row["reviews"]
    if not broken and not reviews:
        return None
    if broken != 1:
        return BrokenGlass(broken, reviews)
    did = _DID.get(row["broken_at"] or "", "engaged")
    by = row["broken_by"] or (row["broken_engaged_by"] if did == "engaged" else "")
    return BrokenGlass(
        engaged=1,
        reviews=reviews,
        switch=row["broken_switch"],
        rule=row["broken_rule"] or "",
        reason=row["broken_reason"] or "",
        by=by,
        did=did,
    )
