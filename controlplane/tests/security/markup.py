"""Texts that would like to be markup, in every place that people and machines can fill."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from breakers.dead_letters.tests.heaps import Heap
from breakers.tests.house import dependency, reports
from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, token_text
from controlplane.core.instances.models import Instance
from controlplane.notify.delivery.tests.message_samples import create_message, hook
from slo.tests import factories as making
from slo.tests.month_of_events import Incident, alert, month
from switches import services
from switches.models import Switch
from switches.rules.tests.factories import break_glass_naming, create_rule
from switches.tests.browsers import engaged, released
from switches.tests.instances import report_version
from switches.tests.ramps import first_gate_result, gated_plan, run_workers, start_ramp
from switches.trips.tests.requests import request_stop

MARK = "data-pwned"
"""An attribute in no template of ours: an element with it was injected."""
BREAKS_OUT = (
    f"\"'></textarea></title></script><img src=x {MARK} onerror=document.title='pwned'>"
    f"<svg {MARK} onload=document.title='pwned'>{{{{7*7}}}}${{7*7}}"
)
SHORT = f"\"'><b {MARK}>x</b>"
REASON = f"payments charged twice {BREAKS_OUT}"
JUSTIFIED = f"vendor says it is mended {BREAKS_OUT}"
LINK = "javascript:document.title='pwned'"


def build(heap: Heap) -> User:
    """Fill the database and the given heap; returns an admin who sees all of it."""
    ada = person("admin", "ada")
    kim = person("operator", f"kim{SHORT}")
    _people(ada)
    _switches(kim)
    _machines()
    _letters(heap)
    _slos()
    return ada


def _people(ada: User) -> None:
    token_text(ada, ["switches:read"], SHORT)
    hook(SHORT)
    create_message("failed", error=f"550 {BREAKS_OUT}")


def _switches(kim: User) -> None:
    now, actor = db_now(), kim.as_actor()
    texts = {"owner": SHORT, "description": BREAKS_OUT}
    services.describe(scope="segment", key="finance", changes=texts, actor=actor, now=now)
    # What was stored before links were checked is no reason to follow it now.
    Switch.objects.filter(pk="segment:finance").update(runbook_url=LINK)
    engaged("segment:finance", by=kim, reason=REASON, evidence={SHORT: [BREAKS_OUT]})
    report_version(f"core/{SHORT}", Switch.objects.get(pk="segment:finance").version, now)
    engaged("experiment:b", by=kim, reason=REASON, expires_in="permanent")
    engaged("segment:gone", by=kim, reason=REASON)
    released("segment:gone")
    create_rule("exclusive", "segment:*", name=SHORT)
    engaged(
        "segment:emea", by=kim, reason=REASON, break_glass=break_glass_naming(SHORT, reason=REASON)
    )
    services.engage(
        scope="global", key="all", reason=REASON, expires_in="24h", actor=actor, now=now
    )
    services.release(scope="global", key="all", justification=JUSTIFIED, actor=actor, now=now)
    ramp = start_ramp(
        "feature:search", by=kim, plan=gated_plan({"type": "external", "gate": "smoke"})
    )
    run_workers(2)
    first_gate_result(ramp, verdict="no_data", evidence={"why": BREAKS_OUT, SHORT: SHORT})


def _machines() -> None:
    now = db_now()
    request_stop(
        now,
        switch="experiment:checkout-b",
        source=SHORT,
        fingerprint=SHORT,
        reason=REASON,
        evidence={SHORT: BREAKS_OUT},
    )
    oracle = dependency("core->oracle", now)
    reports(oracle, now, "open", instance=SHORT, boot=uuid4(), failure_rate=0.6)
    Instance.objects.filter(pk__contains=MARK).update(first_heard_at=now - timedelta(hours=1))


def _letters(heap: Heap) -> None:
    for number in range(3):
        heap.add(payload=f'{{"note": "{number} <b {MARK}>x</b>"}}', error=f"bad {BREAKS_OUT}")
    heap.add(payload=BREAKS_OUT, error=SHORT)
    heap.stream()


def _slos() -> None:
    now = db_now()
    fields: dict[str, Any] = {"description": BREAKS_OUT, "owner": SHORT}
    burning = making.slo(actions=[{"on": "page", "do": "hold_ramps"}])
    type(burning).objects.filter(pk=burning.pk).update(
        **{name: text for name, text in fields.items() if hasattr(burning, name)}
    )
    month(burning, now, [Incident(20, 21, 0.2)], days=1)
    alert(burning, now - timedelta(hours=2), 25)
    services.engage(
        scope="feature",
        key="shell",
        reason=REASON,
        expires_in="1h",
        actor=system_actor(SHORT),
        now=now,
    )
