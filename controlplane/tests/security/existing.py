"""Things that really exist, by the arguments of addresses that lead to them."""

import re
from collections.abc import Mapping
from typing import Any

from breakers.models import Service
from breakers.services import overrides
from breakers.tests.dead_letters.heaps import Heap
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.escalation.models import Escalation
from controlplane.core.gates.models import ExternalVerdict
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.people.models import User
from controlplane.core.people.services import actor_for
from controlplane.core.targets.models import Route, Target
from controlplane.core.tokens.models import Token
from slo.models import Alert, ThresholdRule
from switches.models import Ramp, Rule, Switch, Trip, TripPolicy
from switches.report import services as reports
from switches.report import weeks

ARGUMENT = re.compile(r"<(?:(\w+):)?(\w+)>")
WEEK = "2025-W10"


def more(ada: User) -> None:
    """What :func:`markup.build` leaves out."""
    now, actor = db_now(), actor_for(ada)
    reason = "oracle answers 502 since the 02:10 deploy"
    overrides.put(
        caller="core",
        callee="oracle",
        mode="forced_open",
        reason=reason,
        expires_in="1h",
        actor=actor,
        now=now,
    )
    reports.generate(week=weeks.parse(WEEK), actor=actor, now=now)


def arguments(letters: Heap) -> dict[str, list[str]]:
    """By the name of the argument; `<part of the route> <name>` where that stands for several."""
    entry, *_ = letters.redis.xrange(letters.name(), count=1)
    return {
        "alert_id": _ids(Alert),
        "approval_id": _ids(Approval),
        "caller": ["core"],
        "callee": ["oracle"],
        "delivery_id": _ids(OutboxMessage),
        "entry_id": [entry[0].decode()],
        "escalation_id": _ids(Escalation),
        "experiments key": ["checkout-b"],
        "dlq/jobs job_id": [],
        "dead-letters/jobs job_id": [],
        "gates name": _all(ExternalVerdict, "pk"),
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
        "streams name": [letters.name()],
        "target_id": _ids(Target),
        "runbooks slug": ["postgresql-down"],
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
    """What may stand for an argument of this route; nothing, if none of its kind is there."""
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
