"""Plot of a switch's allowed and blocked calls, with its engagements and ramp steps as marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor, log10

from django.db.models import Q
from django.urls import reverse

from controlplane.core.actors import label_of
from controlplane.core.instances.check_series import (
    CheckBucket,
    CheckSeries,
    coarsen_buckets,
    load_series,
)
from controlplane.core.jobs.models import Job, JobStep
from switches.models import Episode, Ramp
from switches.ramps.live_ramps import was_released_at_once

HOUR, DAY = 3600, 86_400
RANGES = {"1h": HOUR, "6h": 6 * HOUR, "24h": DAY, "7d": 7 * DAY, "90d": 90 * DAY}
"""Seconds of each range; minutes are kept for two days, hours for ninety."""
USUAL_RANGE = "1h"
HEIGHT = 100
MAX_MARKS = 20
MAX_STEPS = 60
MIN_DISTANCE = 7.0
"""Least distance of two markers, in percent of the plot's width; closer ones share a marker."""
TABLE_ROWS = 24
TICKS = 4
ENDS = {
    Episode.End.RELEASED: "Released",
    Episode.End.UNDONE: "Engagement undone",
    Episode.End.EXPIRED: "Released by expiry",
}


@dataclass(frozen=True)
class CallMark:
    """An event of a switch on its plot; `kind` is the state that it began.

    `by` is the label of who did it, if a person or a machine decided it just then.
    """

    at: datetime
    kind: str
    name: str
    by: str = ""
    text: str = ""
    path: str = ""


@dataclass(frozen=True)
class Marker:
    """A numbered marker above the plot, for one mark or for neighbors; `x` is in percent."""

    x: str
    label: str
    kind: str


@dataclass(frozen=True)
class CallPlot:
    """The plot's data and its drawing.

    The paths have x from 0 to `width` (buckets) and y from 0 to `HEIGHT`, which is `top` calls per
    minute. `gaps` underlines the buckets without reports.
    """

    range: str
    series: CheckSeries
    width: str
    top: float
    allowed: str
    blocked: str
    gaps: str
    lines: Sequence[str]
    markers: Sequence[Marker]
    marks: Sequence[CallMark]
    older_marks: int

    @property
    def rows(self) -> list[CheckBucket]:
        return coarsen_buckets(self.series, TABLE_ROWS)

    @property
    def ticks(self) -> list[datetime]:
        first, last = self.series.first, self.series.last
        return [from_unix(first + (last - first) * n // TICKS) for n in range(TICKS + 1)]

    @property
    def until(self) -> datetime:
        return from_unix(self.series.last)

    @property
    def uncounted(self) -> CallMark | None:
        """Return the last change if the plot ends before it."""
        last = self.marks[-1] if self.marks else None
        return last if last and last.at >= self.until else None

    @property
    def has_gaps(self) -> bool:
        return bool(self.gaps)


def load_call_plot(switch_id: str, range_name: str, now: datetime) -> CallPlot:
    """Return the plot of a switch over a range; an unknown name means `USUAL_RANGE`."""
    name = range_name if range_name in RANGES else USUAL_RANGE
    series = load_series(switch_id, RANGES[name], now)
    marks = load_marks(switch_id, from_unix(series.first), now)
    return draw_plot(name, series, marks)


def load_marks(switch_id: str, since: datetime, until: datetime) -> list[CallMark]:
    """Return a switch's engagements, ramp steps and releases between two times, oldest first."""
    marks: list[CallMark] = []

    def add(at: datetime | None, kind: str, name: str, **more: str) -> None:
        if at is not None and since <= at <= until:
            marks.append(CallMark(at, kind, name, **more))

    span = (since, until)
    inside = Q(engaged_at__range=span) | Q(ended_at__range=span)
    for row in Episode.objects.filter(inside, switch_id=switch_id).order_by("-id")[:MAX_MARKS]:
        who = label_of(row.engaged_by_type, row.engaged_by_name)
        add(row.engaged_at, "engaged", "Engaged", by=who, text=row.reason)
        if row.ended_how:
            end = ENDS[Episode.End(row.ended_how)]
            add(row.ended_at, "released", end, by=row.ended_by, text=row.justification)
    moved = Q(started_at__range=span) | Q(job__finished_at__range=span)
    steps = JobStep.objects.filter(moved, job__ramp__switch_id=switch_id, started_at__isnull=False)
    ended: dict[int, Ramp] = {}
    for step in steps.select_related("job__ramp__episode").order_by("-started_at")[:MAX_STEPS]:
        name = f"Ramp step {step.index + 1}: {step.data['percent']:g} % allowed"
        add(step.started_at, "ramping", name, path=_ramp_path(step.job_id))
        if step.job.state == Job.State.CANCELLED:
            ended[step.job_id] = step.job.ramp
    for ramp in ended.values():
        if not was_released_at_once(ramp):
            name = "Ramp ended: engaged again"
            add(ramp.job.finished_at, "engaged", name, path=_ramp_path(ramp.pk))
    return sorted(marks, key=lambda one: one.at)


def _ramp_path(ramp: int) -> str:
    return reverse("ramp_page", args=[ramp])


def draw_plot(range_name: str, series: CheckSeries, marks: Sequence[CallMark]) -> CallPlot:
    """Lay out a series as stacked columns: blocked calls below, allowed ones above them."""
    rates = [bucket.per_minute(bucket.total) for bucket in series.buckets]
    top = round_up(max(rates, default=0.0))
    blocked, allowed, gaps = [], [], []
    for bucket in series.buckets:
        x, width = (bucket.start - series.first) / series.step, bucket.seconds / series.step
        if bucket.total is None:
            gaps.append(f"M{_number(x)} {HEIGHT}h{_number(width)}")
            continue
        below = HEIGHT * bucket.per_minute(bucket.blocked) / top
        above = HEIGHT * bucket.per_minute(bucket.allowed) / top
        blocked.append(_column(x, width, 0.0, below))
        allowed.append(_column(x, width, below, above))
    shown = marks[-MAX_MARKS:]
    length = series.last - series.first
    # A mark of the last minute, whose calls are not counted yet, is drawn at the end.
    places = [min(100, 100 * (mark.at.timestamp() - series.first) / length) for mark in shown]
    return CallPlot(
        range=range_name,
        series=series,
        width=_number(length / series.step),
        top=top,
        allowed="".join(allowed),
        blocked="".join(blocked),
        gaps="".join(gaps),
        lines=[f"{_number(place)}%" for place in places],
        markers=group_markers(places, [mark.kind for mark in shown]),
        marks=shown,
        older_marks=len(marks) - len(shown),
    )


def group_markers(places: Sequence[float], kinds: Sequence[str]) -> list[Marker]:
    """Return the markers of marks at `places` (percent, ascending), numbered from 1.

    A mark too close to the first one of a group joins it (`2–4`), so that labels don't overlap.
    """
    groups: list[list[int]] = []
    for number, place in enumerate(places):
        if groups and place - places[groups[-1][0]] < MIN_DISTANCE:
            groups[-1].append(number)
        else:
            groups.append([number])
    return [
        Marker(
            x=f"{_number(places[group[0]])}%",
            label=str(group[0] + 1) if len(group) == 1 else f"{group[0] + 1}–{group[-1] + 1}",
            kind=kinds[group[-1]],
        )
        for group in groups
    ]


def round_up(rate: float) -> float:
    """Return the next round number (1, 2 or 5 times a power of ten) for the top of an axis."""
    if rate <= 0:
        return 1.0
    ten = 10.0 ** floor(log10(rate))
    return next((step * ten for step in (1, 2, 5) if rate <= step * ten), 10 * ten)


def from_unix(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def spark_paths(series: CheckSeries, height: int) -> tuple[str, str, str]:
    """Return the paths (allowed, blocked, gaps) of a sparkline; a bucket is 1 wide."""
    top = max((bucket.per_minute(bucket.total) for bucket in series.buckets), default=0) or 1
    allowed, blocked, gaps = [], [], []
    for place, bucket in enumerate(series.buckets):
        if bucket.total is None:
            gaps.append(f"M{place} {height}h1")
            continue
        below = height * bucket.per_minute(bucket.blocked) / top
        above = height * bucket.per_minute(bucket.allowed) / top
        blocked.append(_column(place, 1, 0.0, below, height))
        allowed.append(_column(place, 1, below, above, height))
    return "".join(allowed), "".join(blocked), "".join(gaps)


def _column(x: float, width: float, below: float, size: float, height: int = HEIGHT) -> str:
    """Return a column as a path, `below` above the ground; empty if it has no height."""
    if size <= 0:
        return ""
    y, right = _number(height - below), _number(width)
    return f"M{_number(x)} {y}v-{_number(size)}h{right}v{_number(size)}z"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
