"""Things that really exist, by the arguments of addresses that lead to them."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure
from breakers.dead_letters.removals import actions
from breakers.dead_letters.tests.heaps import Heap
from breakers.models import Service
from breakers.services import overrides
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.teams import Membership
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.teams import services as teams
from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalation
from controlplane.core.gates.models import ExternalVerdict
from controlplane.core.http.tests.callers import browser_of
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Route, Target
from slo.models import Alert, Exclusion, Slo, ThresholdRule
from slo.objectives import exclusions
from slo.tests.month_of_events import alert
from switches.drills import services as drills
from switches.models import Drill, Episode, Ramp, Rule, Switch, Trip, TripPolicy
from switches.report import services as reports
from switches.report import weeks

ARGUMENT = re.compile(r"<(?:(\w+):)?(\w+)>")
WEEK = "2025-W10"
REASON = "oracle answers 502 since the 02:10 deploy"
REHEARSED = "rehearsed"
TEAM = "matrix-team"


def more(ada: User, letters: Heap) -> None:
    """Create the objects missing from :func:`markup.build`."""
    now, actor = db_now(), ada.as_actor()
    overrides.set_override(
        caller="core",
        callee="oracle",
        mode="forced_open",
        reason=REASON,
        expires_in="1h",
        actor=actor,
        now=now,
    )
    reports.generate_report(week=weeks.parse(WEEK), actor=actor, now=now)
    escalation.open_escalation(
        subject="outbox:x", event="some.thing", severity="warning", facts={}, now=now
    )
    exclusions.add_exclusion(
        name="core-availability",
        starts_at=now - timedelta(hours=3),
        ends_at=now - timedelta(hours=2),
        reason=REASON,
        actor=actor,
        now=now,
    )
    alert(Slo.objects.get(name="core-availability"), now - timedelta(minutes=20), None)
    team = {"name": "Everyone on call", "members": {ada.username: "lead"}}
    teams.create_team(slug=TEAM, wanted=team, actor=system_actor("shell:matrix"), now=now)
    reports.generate_report(week=weeks.parse(WEEK), team=TEAM, actor=actor, now=now)
    # Somebody who signed in elsewhere.
    browser_of(User.objects.get(username__startswith="kim"))
    _drilled(actor, now)
    _letters_left(letters, actor, now)


def _drilled(actor: Actor, now: datetime) -> None:
    drill = {"scope": "segment", "key": REHEARSED, "mode": "dry", "reason": REASON}
    drills.mark_instances(pattern="core/*", actor=actor, now=now)
    drills.begin_and_schedule(**drill, every="7d", actor=actor, now=now)


def _letters_left(letters: Heap, actor: Actor, now: datetime) -> None:
    """Create a discarded letter, a running job and a paused one."""
    gone = letters.add(to="gone")
    told: dict[str, Any] = {"reason": REASON, "actor": actor, "now": now}
    actions.discard(stream=letters.stream("gone"), entry_id=gone, **told)
    for name in ("under-way", "paused"):
        letters.add(to=name)
        job = replays.request_replay(
            stream=letters.stream(name),
            action="discard",
            chosen=LetterFilter(),
            waits_for=[],
            **told,
        )
    control.intervene(job_id=job.pk, verb="pause", **told)


def kept_for_good(ada: User, switch: str) -> None:
    """Approve a permanent engagement as ada; somebody else requested it."""
    waiting = Approval.objects.get(target=switch, kind=Approval.Kind.PERMANENT, state="pending")
    approvals.approve(approval_id=waiting.pk, comment="", actor=ada.as_actor(), now=db_now())


def arguments(letters: Heap) -> dict[str, list[str]]:
    """Return path arguments of existing objects, by name.

    A key `<part of the route> <name>` applies to a name with several meanings.
    """
    entry, *_ = letters.redis.xrange(letters.name(), count=1)
    return {
        "alert_id": _ids(Alert),
        "action": ["release"],
        "approval_id": _ids(Approval),
        "caller": ["core"],
        "callee": ["oracle"],
        "delivery_id": _ids(OutboxMessage),
        "departure_id": _ids(Departure),
        "drill_id": _ids(Drill),
        "entry_id": [entry[0].decode()],
        "escalation_id": _ids(Escalation),
        "exclusion_id": _ids(Exclusion),
        "<str:key>/comments key": [
            row.partition(":")[2] for row in _all(Episode, "switch_id", switch__scope="segment")
        ],
        "comments/<slug:kind> key": _ids(Alert),
        "comments kind": ["alert"],
        "favorites key": ["segment:finance"],
        "favorites kind": ["switch"],
        "experiments key": ["checkout-b"],
        "dlq/jobs job_id": _all(Job, "pk", kind=replays.KIND),
        "dead-letters/jobs job_id": _all(Job, "pk", kind=replays.KIND),
        "gates name": _all(ExternalVerdict, "pk"),
        "group_id": _ids(Alert),
        "job_id": _ids(Job),
        "key": [row.partition(":")[2] for row in _ids(Switch)],
        "message_id": _ids(OutboxMessage),
        # One of the global switch asks for more than a role says.
        "ramp_id": _all(Ramp, "pk", switch__scope="feature"),
        "review_id": _ids(Approval),
        "route_id": _ids(Route),
        "rule_id": _ids(Rule),
        "scope": ["segment", "feature", "experiment"],
        "services slug": _all(Service, "slug"),
        "thresholds name": _all(ThresholdRule, "name"),
        "slos name": ["core-availability"],
        "server": ["default"],
        "session_id": _all(BrowserSession, "pk"),
        "streams name": [letters.name()],
        "target_id": _ids(Target),
        "runbooks slug": ["postgresql-down"],
        "teams slug": [TEAM],
        "team": [TEAM],
        "members user_id": _all(Membership, "user_id"),
        "authority/<slug:action> kind": ["global"],
        "bulk name": [letters.name()],
        "dead-letters name": [letters.name()],
        "token_id": _ids(Token),
        "trip_id": _ids(Trip),
        "trigger": _all(TripPolicy, "trigger"),
        "kind": ["channel"],
        "user_id": _ids(User),
        "week": [WEEK],
    }


def path_of(there: Mapping[str, list[str]], route: str) -> str | None:
    """An address of this route that leads to something; None if some of it is not there."""
    wanted = [name for _, name in ARGUMENT.findall(route)]
    found = {name: choice(there, route, name) for name in wanted}
    if not all(found.values()):
        return None
    return "/" + ARGUMENT.sub(lambda match: found[match[2]][0], route)


def choice(there: Mapping[str, list[str]], route: str, name: str) -> list[str]:
    """Return the values for this argument of the route; empty if no such object exists."""
    for key, found in there.items():
        part, _, of = key.rpartition(" ")
        if of == name and part and f"/{part}/" in f"/{route}":
            return found
    return there.get(name, [])


def _ids(model: Any) -> list[str]:
    return _all(model, "pk")


def _all(model: Any, name: str, **which: Any) -> list[str]:
    rows = model.objects.filter(**which).order_by("pk").values_list(name, flat=True)
    return [str(one) for one in rows[:12]]
