"""A valid write to an existing object, for each API path that changes something."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from django.test import Client

from breakers.dead_letters.tests.heaps import Heap
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.core.approvals.models import Approval
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Target
from controlplane.tests.security import existing_objects
from controlplane.tests.security.existing_objects import REASON, REHEARSED
from controlplane.tests.security.generated_requests import WORDS
from slo.models import Alert
from switches.models import Ramp

WHY = {"reason": REASON}
RULE = {"name": "one region", "kind": "exclusive", "switches": ["segment:a", "segment:b"], **WHY}
TRIP = {"switch": "experiment:checkout-b", "source": "latency-monitor", "fingerprint": "p95", **WHY}
THRESHOLD = {
    "title": "Calls of core that time out",
    "metric": "timeout_rate",
    "statistic": "rate",
    "window": "10m",
    "comparison": ">=",
    "value": 0.02,
    "min_events": 50,
    "severity": "critical",
}
SWITCHES = {"switches.yaml": "switches: {feature:checkout: {owner: Core}}"}
ALERTS = {
    "version": "4",
    "status": "firing",
    "alerts": [{"status": "firing", "labels": {"switchgear_switch": "experiment:checkout-b"}}],
}


class House(NamedTuple):
    """Existing objects; `admin` is a browser with access to all of them."""

    letters: Heap
    there: dict[str, list[str]]
    admin: Client

    def read(self, path: str) -> Any:
        return self.admin.get(f"/api/v1/{path}").json()

    def letter(self) -> str:
        """Add a letter without prior actions."""
        return self.letters.add()


Value = Any | Callable[[House], Any]


@dataclass(frozen=True)
class Write:
    """A valid write.

    `args` are path arguments, if the first object of the kind is unsuitable. `need` replaces the
    matrix's, if this body requires more than others; with `hidden`, the answer without permission
    is 404.
    """

    method: str
    route: str
    body: Value = field(default_factory=dict)
    args: Mapping[str, Value] = field(default_factory=dict)
    need: str = ""
    hidden: bool = False

    def path(self, house: House) -> str:
        values = {name: [str(_resolve_value(value, house))] for name, value in self.args.items()}
        given = {
            name: values.get(name) or existing_objects.choice(house.there, self.route, name)
            for _, name in existing_objects.ARGUMENT.findall(self.route)
        }
        return "/api/v1/" + existing_objects.ARGUMENT.sub(
            lambda found: given[found[2]][0], self.route
        )

    def sent(self, house: House) -> Any:
        return _resolve_value(self.body, house)


def _resolve_value(value: Value, house: House) -> Any:
    return value(house) if callable(value) else value


def failed(_house: House) -> int:
    return OutboxMessage.objects.filter(state="failed").latest("pk").pk


def live_ramp(_house: House) -> Any:
    return Ramp.objects.get(switch_id="feature:search", live=True).pk


def paused(kind: str) -> Callable[[House], int]:
    return lambda _house: Job.objects.get(kind=kind, state="paused").pk


def _under_way(_house: House) -> int:
    return Job.objects.filter(kind="dead_letters").exclude(state="paused").latest("pk").pk


def find_pending(kind: str) -> Callable[[House], int]:
    return lambda _house: Approval.objects.filter(kind=kind, state="pending").latest("pk").pk


def open_alert(_house: House) -> int:
    return Alert.objects.get(resolved_at=None).pk


def hook(_house: House) -> int:
    return Target.objects.filter(address="webhook").latest("pk").pk


def _session_of_kim(_house: House) -> str:
    return BrowserSession.objects.get(user__username__startswith="kim").pk


def _kim(_house: House) -> dict[str, str]:
    return {"user": User.objects.get(username__startswith="kim").username}


def _span(_house: House) -> dict[str, str]:
    now = db_now()
    return {
        "starts_at": timestamp(now - timedelta(hours=9)),
        "ends_at": timestamp(now - timedelta(hours=8)),
        **WHY,
    }


def _point(_house: House) -> dict[str, Any]:
    point = {"slo": "core-availability", "source": "a", "good": 9, "total": 10}
    return {"points": [{**point, "at": timestamp(db_now() - timedelta(seconds=90))}]}


def _of_a_heap(house: House) -> dict[str, Any]:
    house.letters.add(to="bulk")
    return {"action": "discard", "stream": house.letters.name("bulk"), **WHY}


FINANCE = {"scope": "segment", "key": "finance"}
FRESH = {"scope": "feature", "key": "fresh"}
WRITES = (
    Write("POST", "switches/trip", TRIP),
    Write("POST", "hooks/alertmanager", ALERTS),
    Write("POST", "experiments/<str:key>/arms", {"arms": WORDS["arms"]}),
    Write(
        "PUT", "trip-policies/", lambda house: {"policies": house.read("trip-policies/")["results"]}
    ),
    Write("POST", "rules/", RULE),
    Write("PUT", "rules/<int:rule_id>/", RULE),
    Write("DELETE", "rules/<int:rule_id>/", WHY),
    Write("POST", "reports/weekly/<str:week>/sign", {"comment": "read"}),
    Write("POST", "reports/weekly/<str:week>/<slug:team>/sign", {"comment": "read"}),
    Write(
        "POST", "ramps/<int:ramp_id>/advance", WHY, {"ramp_id": live_ramp}, "ramps:write + approve"
    ),
    Write("POST", "ramps/<int:ramp_id>/pause", WHY, {"ramp_id": live_ramp}),
    Write("POST", "ramps/<int:ramp_id>/resume", WHY, {"ramp_id": paused("ramp")}),
    Write("POST", "ramps/<int:ramp_id>/abort", WHY, {"ramp_id": live_ramp}),
    Write("POST", "drills/", {"switch": "segment:quiet", "mode": "dry", **WHY}),
    Write("POST", "drills/instances/", {"pattern": "ledger/*"}),
    Write("DELETE", "drills/instances/", {"pattern": "core/*"}),
    Write(
        "DELETE",
        "drills/schedules/<str:scope>/<str:key>/",
        {},
        {"scope": "segment", "key": REHEARSED},
    ),
    Write("PATCH", "switches/<str:scope>/<str:key>/", {"owner": "core team"}, FINANCE),
    Write("POST", "switches/<str:scope>/<str:key>/engage", {**WHY, "expires_in": "1h"}, FRESH),
    Write("POST", "switches/<str:scope>/<str:key>/extend", {**WHY, "expires_in": "7d"}, FINANCE),
    Write("POST", "switches/<str:scope>/<str:key>/acknowledge", {}, FINANCE),
    Write(
        "POST",
        "switches/<str:scope>/<str:key>/reconfirm",
        WHY,
        {"scope": "experiment", "key": "b"},
    ),
    Write(
        "POST",
        "switches/<str:scope>/<str:key>/release",
        {"justification": WORDS["justification"]},
        FINANCE,
    ),
    Write("POST", "check", {"segments": ["finance"]}),
    Write("POST", "dependencies/", {"caller": "web", "callee": "ledger"}),
    Write("PUT", "dependencies/<str:caller>/<str:callee>/", {"notes": "as agreed"}),
    Write("DELETE", "dependencies/<str:caller>/<str:callee>/", WHY),
    Write(
        "PUT",
        "dependencies/<str:caller>/<str:callee>/override",
        {"mode": "forced_open", "expires_in": "2h", **WHY},
    ),
    Write("DELETE", "dependencies/<str:caller>/<str:callee>/override", WHY),
    Write("POST", "services/", {"slug": "ledger"}),
    Write("PUT", "services/<str:slug>/", {"notes": "as agreed"}, {"slug": "oracle"}),
    *(
        Write(
            "POST",
            f"dlq/streams/<letter_stream:name>/messages/<str:entry_id>/{verb}",
            WHY,
            {"entry_id": House.letter},
        )
        for verb in ("retry", "discard", "reveal")
    ),
    Write("POST", "dlq/jobs/", _of_a_heap),
    Write("POST", "dlq/jobs/<int:job_id>/pause", WHY, {"job_id": _under_way}),
    Write("POST", "dlq/jobs/<int:job_id>/resume", WHY, {"job_id": paused("dead_letters")}),
    Write("POST", "dlq/jobs/<int:job_id>/cancel", WHY, {"job_id": _under_way}),
    Write("POST", "dlq/outbox/<int:message_id>/retry", {}, {"message_id": failed}),
    Write("POST", "dlq/outbox/<int:message_id>/discard", WHY, {"message_id": failed}),
    Write("POST", "dlq/archive/<int:departure_id>/restore", WHY),
    Write("POST", "slos/", {"name": "ledger-availability", "target": 0.99, "service": "ledger"}),
    Write("PUT", "slos/<str:name>/", {"target": 0.99, "service": "core"}),
    Write("DELETE", "slos/<str:name>/", WHY),
    Write(
        "POST",
        "slos/<str:name>/backtest",
        lambda _house: {"start": timestamp(db_now() - timedelta(hours=6))},
    ),
    Write("POST", "slos/<str:name>/exclusions/", _span),
    Write("DELETE", "slos/<str:name>/exclusions/<str:exclusion_id>/", WHY),
    Write("POST", "sli/", _point),
    Write("POST", "openslo/", lambda house: house.read("openslo/")),
    Write("POST", "alerts/<str:alert_id>/ack", {"comment": "on it"}, {"alert_id": open_alert}),
    Write("POST", "alerts/ack", lambda house: {"alerts": [int(open_alert(house))]}),
    Write("POST", "alerts/<str:alert_id>/comments/", {"text": "looking at it"}),
    Write("POST", "switches/<str:scope>/<str:key>/comments/", {"text": "looking at it"}),
    Write("PUT", "favorites/<slug:kind>/<favorite_key:key>"),
    Write("DELETE", "favorites/<slug:kind>/<favorite_key:key>"),
    Write("POST", "configuration/", {"files": SWITCHES}),
    Write("POST", "configuration/diff", {"files": SWITCHES}),
    Write("POST", "samples/clear", WHY),
    Write("POST", "samples/load", {}),
    Write("POST", "thresholds/", {**THRESHOLD, "name": "core-timeouts"}),
    Write("PUT", "thresholds/<str:name>/", THRESHOLD),
    Write("DELETE", "thresholds/<str:name>/", WHY),
    Write(
        "PATCH",
        "approvals/<int:approval_id>/",
        WHY,
        {"approval_id": find_pending("release")},
        "who asked",
    ),
    Write(
        "POST", "approvals/<int:approval_id>/approve", {}, {"approval_id": find_pending("release")}
    ),
    Write("POST", "approvals/<int:approval_id>/deny", {}, {"approval_id": find_pending("release")}),
    Write(
        "POST",
        "reviews/<int:review_id>/sign",
        {},
        {"review_id": find_pending("break_glass_review")},
    ),
    *(
        Write("POST", f"jobs/<int:job_id>/{verb}", WHY, {"job_id": which}, "ramps:write")
        for verb, which in (
            ("pause", live_ramp),
            ("resume", paused("ramp")),
            ("cancel", live_ramp),
        )
    ),
    Write("POST", "gates/<str:name>", {"verdict": "ok"}, {"name": "smoke"}),
    Write("POST", "deliveries/retry", {"destination": "slack"}),
    Write("POST", "deliveries/<int:delivery_id>/retry", {}, {"delivery_id": failed}),
    Write("POST", "deliveries/<int:delivery_id>/discard", WHY, {"delivery_id": failed}),
    Write("POST", "targets/", {"name": "ops", "kind": "person", "email": "ops@example.org"}),
    Write(
        "PUT",
        "targets/<int:target_id>/",
        {"name": "ops", "kind": "channel", "address": "slack:#ops"},
    ),
    Write("DELETE", "targets/<int:target_id>/", {}, {"target_id": hook}),
    Write("POST", "targets/<int:target_id>/test", {}, {"target_id": hook}),
    Write("POST", "routes/", {"event": "drill.*", "target": "slack"}),
    Write("DELETE", "routes/<int:route_id>/"),
    Write("POST", "escalations/<int:escalation_id>/acknowledge", {}),
    Write("POST", "teams/", {"slug": "payments", "name": "Payments", **WHY}),
    Write("PATCH", "teams/<slug:slug>/", {"owns": ["segment:finance*"], **WHY}),
    Write("PUT", "teams/<slug:slug>/contacts/", {}),
    Write("DELETE", "teams/<slug:slug>/", WHY),
    Write(
        "PUT",
        "authority/<slug:action>/<slug:kind>/",
        {"relation": "anyone", "role": "approver", **WHY},
    ),
    Write("DELETE", "authority/<slug:action>/<slug:kind>/", WHY),
    Write("POST", "users/", {"username": "new"}),
    Write("PATCH", "users/<int:user_id>/", {"display_name": "Kim"}),
    Write("POST", "sessions/end", _kim, {}, "admin"),
    Write(
        "DELETE",
        "sessions/<str:session_id>/",
        {},
        {"session_id": _session_of_kim},
        "admin",
        hidden=True,
    ),
    Write("POST", "tokens/", {"name": "ci", "scopes": ["slo:read"]}),
    Write("POST", "tokens/<int:token_id>/revoke", WHY),
    Write("POST", "tokens/<int:token_id>/rotate", {"overlap": "24h"}),
    Write("POST", "tokens/<int:token_id>/hand-over", {"owner": "matrix-approver"}),
)
# Only for whoever engaged or forced, within 30 s: tests of `switches` and `breakers` check by whom.
OF_ONE_PERSON = {
    ("POST", "switches/<str:scope>/<str:key>/undo"),
    ("POST", "authority/ask"),
    ("POST", "dependencies/<str:caller>/<str:callee>/override/undo"),
}
