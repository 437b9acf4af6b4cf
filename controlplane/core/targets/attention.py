"""What is missing before the right people hear: steps and routes that reach nobody."""

from collections import defaultdict
from datetime import datetime

from controlplane.core.sections import Waiting
from controlplane.core.targets import reach
from controlplane.core.targets.models import Route, Target
from controlplane.core.targets.reach import Rung

PAGE = "/targets/"


def unreachable_steps(now: datetime) -> list[Waiting]:
    """Each target that some step would tell and that reaches nobody, and each silent severity."""
    ladders = {severity: reach.ladder(severity, now) for severity in reach.SEVERITIES}
    found = [
        _silent(severity, ladder, now)
        for severity, ladder in ladders.items()
        if not any(rung.reach.to for rung in ladder)
    ]
    missed: dict[int, list[tuple[str, Rung]]] = defaultdict(list)
    for severity, ladder in ladders.items():
        for rung in ladder:
            if not rung.reach.to:
                missed[rung.step.target_id].append((severity, rung))
    return found + [_missed(rungs) for rungs in missed.values()]


def unreachable_routes(now: datetime) -> list[Waiting]:
    """That no route reaches anything, so that nobody hears of any change; or that some do not."""
    routes = list(Route.objects.select_related("target__user").order_by("id"))
    silent = [route for route in routes if not reach.reach(route.target, now).to]
    if len(silent) < len(routes):
        return [_silent_route(route, now) for route in silent]
    since = min((route.created_at for route in routes), default=now)
    return [
        Waiting(
            kind="routes",
            severity="critical",
            title="No message reaches anybody",
            detail="No route leads to anything that is configured here: what is engaged, released "
            "or overdue is told to nobody but who looks at this console.",
            path=PAGE,
            since=since,
        )
    ]


def _silent(severity: str, ladder: list[Rung], now: datetime) -> Waiting:
    since = Target.objects.filter(name=severity).values_list("created_at", flat=True).first()
    return Waiting(
        kind="escalation",
        severity="critical" if severity == "critical" else "warning",
        title=f"Nobody would be told of what is {severity}",
        detail=f"None of its {len(ladder)} steps reaches anybody; only the routes would be told."
        if ladder
        else "It has no steps; only the routes would be told.",
        path=PAGE,
        since=since or now,
    )


def _missed(rungs: list[tuple[str, Rung]]) -> Waiting:
    target, why = rungs[0][1].step.target, rungs[0][1].reach.why
    steps = ", ".join(f"{severity} {_after(rung)}" for severity, rung in rungs)
    return Waiting(
        kind="target",
        severity="warning",
        title=f"{target.name} reaches nobody: {why}",
        detail=f"Would be told: {steps}. Until somebody is named, those steps are skipped.",
        path=PAGE,
        since=target.created_at,
    )


def _silent_route(route: Route, now: datetime) -> Waiting:
    return Waiting(
        kind="route",
        severity="warning",
        title=f"The route for {route.event} to {route.target.name} reaches nobody",
        detail=f"{route.target.name}: {reach.reach(route.target, now).why}.",
        path=PAGE,
        since=route.created_at,
    )


def _after(rung: Rung) -> str:
    return f"after {rung.after}" if rung.after else "at once"
