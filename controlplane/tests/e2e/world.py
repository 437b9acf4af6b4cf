"""An installation on a bad night: objects of all kinds, in every state."""

from datetime import timedelta
from typing import Any

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals import actions as acting
from breakers.dead_letters.tests.heaps import Heap
from breakers.services import overrides
from breakers.tests.house import dependency, minute, reports
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.services import create_team
from controlplane.core.actors import Actor, system_actor
from controlplane.core.clock import db_now
from controlplane.core.fleet.tests import rows
from controlplane.core.http.tests.callers import person, token_text
from controlplane.core.jobs import engine
from controlplane.notify.delivery.tests.message_samples import create_message, hook, somebody
from slo.evaluation import tick
from slo.models import SloStatus
from slo.tests import factories as making
from slo.tests.month_of_events import Incident, alert, excluded, month
from switches import services
from switches.drills import services as drills
from switches.drills.tests import drill_helpers
from switches.models import Switch
from switches.report import services as weekly
from switches.report import weeks
from switches.report.compose import get_zone
from switches.rules.tests.factories import break_glass_naming, create_rule
from switches.tests.browsers import REASON, SAFE_NOW, engaged, overdue, released
from switches.tests.instances import report_acknowledgment, report_checks, report_version
from switches.tests.ramps import first_gate_result, gated_plan, run_workers, start_ramp
from switches.trips.tests.requests import request_stop

WHY = "oracle is back since 03:10, INC-4411"


def build(heap: Heap) -> User:
    """Fill the database and the given heap of letters; returns an admin who may see all of it."""
    ada = person("admin", "ada")
    kim = person("operator", "kim")
    actor = kim.as_actor()
    _people(ada)
    _breakers(actor)
    _switches(kim)
    _ramps(kim)
    _drills()
    _letters(heap, actor)
    _slos()
    _sent()
    _report(ada)
    _fleet()
    _teams()
    return ada


def _people(ada: User) -> None:
    somebody("lee", email="lee@example.org")
    somebody("오퍼레이터")
    hook("pager")
    token_text(ada, ["switches:read"], "billing")


def _switches(kim: User) -> None:
    now = db_now()
    report_checks(
        "core/a1", "segment:finance", "feature:nl2sql", at=now, per_second=40, blocked=900
    )
    engaged("segment:finance", by=kim, reason="결제 이중 청구 의심, 재현 확인됨 INC-4411")
    finance = Switch.objects.get(pk="segment:finance")
    report_version("core/a1", finance.version, now)
    report_version("core/a2", finance.version - 1, now - timedelta(seconds=60))
    report_acknowledgment("core/a1", finance, 140)
    engaged("feature:nl2sql", by=kim, expires_in="50m")
    engaged("experiment:ranker-b", by=kim, expires_in="permanent")
    overdue("segment:late")
    engaged("segment:gone", by=kim)
    released("segment:gone")
    create_rule("exclusive", "segment:*", name="결제 경로 하나는 열어 둔다")
    create_rule("at_most", "feature:*", name="Never more than five features", n=5)
    engaged("segment:emea", by=kim, break_glass=break_glass_naming("결제 경로 하나는 열어 둔다"))
    services.engage(
        scope="global", key="all", reason=REASON, expires_in="24h", actor=kim.as_actor(), now=now
    )
    services.release(
        scope="global", key="all", justification=SAFE_NOW, actor=kim.as_actor(), now=now
    )
    request_stop(now, switch="experiment:checkout-b")
    request_stop(now, switch="segment:hr", source="leak-detector")


def _ramps(kim: User) -> None:
    ramp = start_ramp(
        "feature:search", by=kim, plan=gated_plan({"type": "external", "gate": "smoke"})
    )
    run_workers(2)
    first_gate_result(
        ramp, verdict="no_data", evidence={"why": "no observation of smoke has been reported yet"}
    )
    start_ramp("feature:export", by=kim, plan=gated_plan({"type": "manual"}))
    run_workers(90)


def _drills() -> None:
    now = db_now()
    drill_helpers.mark(drill_helpers.CANARY, now=now)
    drill_helpers.report_present(drill_helpers.CANARY, now=now)
    drill_helpers.run_drill(
        drill_helpers.begin("feature:calm", now=now), drill_helpers.CANARY, now=now
    )
    drills.schedule_drill(
        scope="feature",
        key="calm",
        mode="live",
        reason=drill_helpers.WHY,
        every="7d",
        actor=drill_helpers.SHELL,
        now=now,
    )
    drill_helpers.begin("feature:rehearsed", now=now)


def _breakers(actor: Actor) -> None:
    now = db_now()
    dependency("canvas->core", now, criticality="high")
    oracle = dependency("core->oracle", now, criticality="high", timeout_ms=60_000)
    vision = dependency("core->vision", now)
    reports(oracle, now, "open", instance="a1", failure_rate=0.63)
    reports(oracle, now, "closed", instance="a2")
    reports(vision, now, "half_open", instance="a1", failure_rate=0.2)
    for ago in range(30):
        minute(oracle, now, ago, success=100, timeout=3 * ago)
    asked: dict[str, Any] = {"mode": "forced_closed", "reason": REASON, "expires_in": "1h"}
    overrides.set_override(caller="core", callee="vision", **asked, actor=actor, now=now)


def _letters(heap: Heap, actor: Actor) -> None:
    now = db_now()
    for number in range(6):
        heap.add(
            payload=f'{{"total": "{number}", "email": "kim@example.org"}}',
            error=f"total of {number} is no number",
        )
    first = heap.add(error="timeout after 30 s")
    second = heap.add(error="timeout after 31 s")
    third = heap.add(error="timeout after 32 s")
    stream = heap.stream()
    indexer.catch_up(stream, now)
    acting.discard(stream=stream, entry_id=first, reason=WHY, actor=actor, now=now)
    acting.retry(stream=stream, entry_id=second, reason=WHY, actor=actor, now=now)
    acting.retry(
        stream=stream,
        entry_id=third,
        reason=WHY,
        actor=actor,
        now=now,
        edited_fields={"order": "seventeen"},
    )
    replays.request_replay(
        stream=stream,
        action="retry",
        chosen=LetterFilter(),
        rate_per_second=1.0,
        reason=WHY,
        actor=actor,
        now=now,
    )
    engine.run_tick("dlq.jobs", now)


def _slos() -> None:
    now = db_now()
    burning = making.slo(actions=[{"on": "page", "do": "hold_ramps"}])
    month(burning, now, [Incident(20, 21, 0.2), Incident(2000, 30, 0.3)], days=3)
    making.slo("canvas-latency", service="canvas", kind="latency", target=0.95, threshold_ms=3000)
    tick.evaluate_due_minutes(now)
    alert(burning, now - timedelta(days=1), 25)
    last = SloStatus.objects.get(slo=burning).minute
    excluded(burning, last - 700, last - 640)


def _sent() -> None:
    for state in ("sent", "failed", "pending"):
        create_message(state)
    create_message("failed", "email:lee@example.org", error="550 no such user")


def _fleet() -> None:
    now = db_now()
    rows.create_process("dp-1", now)
    rows.create_process("eu-1", now, upstream="dp-1", age_seconds=42.0)
    rows.create_process("eu-2", now, upstream="dp-1", silent_for=90)
    rows.create_process("us-1", now, upstream="dp-1", version=None, epoch=None, age_seconds=None)


def _report(ada: User) -> None:
    now = db_now()
    this = weeks.week_of(now, get_zone())
    for week in (this.later(-1), this):
        weekly.generate_report(week=week, actor=ada.as_actor(), now=now)


def _teams() -> None:
    wanted = {
        "name": "검색",
        "members": {"ada": "lead", "kim": "member"},
        "owns": ["segment:search*", "service:core"],
        "runbook_url": "https://runbooks.example/search",
    }
    create_team(slug="search", wanted=wanted, actor=system_actor("seed"), now=db_now())
