"""The feed of changes before an event, the alerts after a change, and the pages that show them."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from breakers.services import overrides
from breakers.tests.house import SHELL, dependency, reports
from controlplane.core.audit import change_feed
from controlplane.core.audit import services as audit
from controlplane.core.audit.change_feed import (
    CHANGE_KINDS,
    list_alerts_after,
    list_changes_before,
    summarize_changes_before,
)
from controlplane.core.clock import db_now
from slo.models import ThresholdRule
from slo.tests import factories
from slo.tests.month_of_events import alert
from switches.tests.browsers import browser_as, engaged, page, text
from switches.tests.ramps import QUICK, start_ramp

pytestmark = pytest.mark.django_db
REASON = "Vendor confirms recovery, one bad pod flaps, INC-4411"


def force(now, caller="core", callee="oracle", mode="forced_open"):
    return overrides.set_override(
        caller=caller, callee=callee, mode=mode, reason=REASON, expires_in="1h", actor=SHELL,
        now=now,
    )  # fmt: skip


def write(now, action="dependency.changed", targets=("dependency:core->oracle",), after=None):
    audit.record_many(
        [
            {"actor": SHELL, "action": action, "target": one, "now": now, "after": after}
            for one in targets
        ]
    )


def texts(changes):
    return [change.text for change in changes]


@pytest.mark.parametrize(
    ("action", "target", "document", "phrase"),
    [
        ("switch.engaged", "feature:nl2sql", {}, "feature:nl2sql engaged"),
        (
            "ramp.advanced",
            "feature:nl2sql",
            {"allow_percent": 25.0},
            "feature:nl2sql: ramp advanced, 25 % allowed",
        ),
        (
            "override.set",
            "dependency:core->synapse",
            {
                "mode": "forced_open",
                "set_at": "2026-11-24T19:14:00Z",
                "expires_at": "2026-11-24T20:14:00Z",
            },
            "core → synapse forced open for 1 h",
        ),
        (
            "override.undone",
            "dependency:core->synapse",
            {
                "mode": "disabled",
                "set_at": "2026-11-24T19:14:00Z",
                "expires_at": "2026-11-24T20:14:00Z",
            },
            "core → synapse: override undone",
        ),
        ("dependency.changed", "dependency:a->b", {}, "Policy of a → b changed"),
        ("service.changed", "service:core", {}, "Service core changed"),
        ("rule.removed", "rule:at most two", {}, "Safety rule at most two removed"),
        ("slo.changed", "slo:core-availability", {}, "SLO core-availability changed"),
        ("threshold.created", "threshold:queue:deep", {}, "Threshold rule queue:deep created"),
        ("override.set", "dependency:a->b", {"mode": "new"}, "dependency:a->b: override.set"),
    ],
)
def test_change_is_described_by_its_kind(action, target, document, phrase):
    kind = CHANGE_KINDS[action]

    assert kind.describe(target, document) == phrase
    assert kind.path(target).startswith("/")


def test_changes_of_the_last_hour_are_listed_related_ones_apart():
    now = db_now()
    write(now - timedelta(minutes=61))
    write(now - timedelta(minutes=50), "override.removed")  # An entry that lacks its fields.
    write(now - timedelta(minutes=40), "slo.changed", ["slo:other"])
    write(now - timedelta(minutes=30), "job.paused")
    write(now - timedelta(minutes=20))
    write(now + timedelta(seconds=1))

    feed = list_changes_before(now, targets=["dependency:core->oracle"])

    assert texts(feed.related) == [
        "Policy of core → oracle changed",
        "dependency:core->oracle: override.removed",
    ]
    assert texts(feed.others) == ["SLO other changed"]
    assert (feed.total, feed.unlisted) == (3, 0)


def test_changes_of_own_and_called_services_dependencies_are_related():
    now = db_now()
    before = now - timedelta(hours=2)
    for name in ("canvas->core", "core->synapse", "synapse->neo4j", "vision->oracle"):
        dependency(name, before)
    engaged("feature:nl2sql", now=now - timedelta(minutes=3))
    force(now - timedelta(minutes=2), "core", "synapse")
    force(now - timedelta(minutes=1), "vision", "oracle")

    feed = list_changes_before(now, services=["canvas"])

    assert texts(feed.related) == ["core → synapse forced open for 1 h"]
    assert texts(feed.others) == [
        "vision → oracle forced open for 1 h",
        "feature:nl2sql engaged",
    ]


def test_switch_that_the_service_checks_is_related():
    now = db_now()
    said = reports(dependency("core->oracle", now - timedelta(hours=2)), now)
    said.checks = {"feature:nl2sql": {"seen": "2026-11-24T19:14:00Z"}}
    said.save()
    engaged("feature:nl2sql", now=now - timedelta(minutes=3))

    feed = list_changes_before(now, services=["core"])

    assert texts(feed.related) == ["feature:nl2sql engaged"]


def test_loaded_folder_is_one_change():
    now = db_now()
    write(now, targets=[f"dependency:core->s{n}" for n in range(300)])

    (change,) = list_changes_before(now).others

    assert (change.text, change.more) == ("Policy of core → s299 changed", 299)


def test_long_lists_are_cut_and_counted():
    now = db_now()
    for n in range(30):
        write(now - timedelta(seconds=n))
        write(now - timedelta(seconds=n), targets=["dependency:a->b"])

    feed = list_changes_before(now, targets=["dependency:core->oracle"])

    assert len(feed.related) == change_feed.MAX_RELATED
    assert (feed.related_total, feed.others_total, feed.unlisted) == (30, 30, 20)


def test_changes_are_found_by_the_index_of_time():
    now = db_now()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_auditentry DISABLE TRIGGER USER")
        cursor.execute(
            """INSERT INTO core_auditentry (id, at, actor_type, actor_name, action, target, reason,
                   before, after, request_id, ip, previous_hash, hash)
               SELECT n, %s - n * interval '5 minutes', 'user', 'kim',
                      (ARRAY['switch.engaged', 'dependency.changed', 'job.paused'])[n %% 3 + 1],
                      'feature:' || n, '', 'null', 'null', '', '', '', ''
               FROM generate_series(1, 3000) n""",
            [now],
        )
        cursor.execute("ALTER TABLE core_auditentry ENABLE TRIGGER USER")
        cursor.execute("ANALYZE core_auditentry")
        with CaptureQueriesContext(
            connection,
        ) as found:
            feed = list_changes_before(now)
        cursor.execute(f"EXPLAIN (FORMAT JSON) {found[0]['sql']}")
        plan = cursor.fetchone()[0]

    assert feed.total == 8
    assert len(found) == 1
    assert "audit_by_time" in json.dumps(plan)


def test_alerts_of_the_hour_after_are_listed_related_ones_apart():
    now = db_now()
    slo = factories.slo()
    at = now - timedelta(hours=2)
    alert(slo, at - timedelta(minutes=1), 5, subject="too-early")
    alert(slo, at + timedelta(minutes=5), 9, subject="core-p95", service="core", summary="Slow")
    alert(
        slo,
        at + timedelta(minutes=6),
        None,
        subject="vision-p95",
        service="vision",
        summary="Blind",
    )
    alert(slo, at + timedelta(minutes=61), None, subject="too-late")

    rule = ThresholdRule.objects.get(name="switch_engaged")
    alert(slo, at + timedelta(minutes=1), None, threshold=rule, subject="feature:chat")

    feed = list_alerts_after(at, services=["core", ""], subjects=["feature:chat"])

    (related,), (other,) = feed.related, feed.others
    assert (related.text, other.text) == ("Slow", "Blind")
    assert related.path.startswith("/alerts/")


def test_alert_page_lists_the_override_made_before_it():
    now = db_now()
    dependency("core->synapse", now - timedelta(hours=2))
    force(now - timedelta(minutes=20), "core", "synapse")
    found = alert(factories.slo(service="core"), now - timedelta(minutes=5), None, service="core")

    content = text(page(browser_as("viewer").get(f"/alerts/{found.pk}/")))

    assert "Changes in the hour before it began" in content
    assert "core → synapse forced open for 1 h" in content
    assert REASON in content


def test_alert_page_without_changes_says_so():
    now = db_now()
    found = alert(factories.slo(), now - timedelta(hours=5), None)

    content = text(page(browser_as("viewer").get(f"/alerts/{found.pk}/")))

    assert "No changes recorded in this hour." in content


def test_slo_page_lists_changes_before_its_alert():
    now = db_now()
    dependency("core->synapse", now - timedelta(hours=9))
    force(now - timedelta(hours=2), "core", "synapse")
    slo = factories.slo(service="core")

    browser = browser_as("viewer")
    quiet = text(page(browser.get(f"/slos/{slo.name}/")))
    alert(slo, now - timedelta(minutes=90), None, service="core")
    alarmed = text(page(browser.get(f"/slos/{slo.name}/")))

    assert "Changes in the last hour" in quiet
    assert "synapse forced open" not in quiet
    assert "Changes in the hour before its alert" in alarmed
    assert "core → synapse forced open for 1 h" in alarmed


def test_dependency_page_lists_the_alerts_after_its_override():
    now = db_now()
    dependency("core->synapse", now - timedelta(hours=9))
    dependency("canvas->core", now - timedelta(hours=9))
    force(now - timedelta(minutes=20), "core", "synapse")
    alert(
        factories.slo(), now - timedelta(minutes=10), None, service="canvas", summary="Canvas burns"
    )

    content = text(page(browser_as("viewer").get("/breakers/core/synapse/")))

    assert "Alerts in the hour after the last change here" in content
    assert "Canvas burns" in content


def test_switch_page_lists_the_alerts_after_its_engagement():
    now = db_now()
    engaged("feature:nl2sql", now=now - timedelta(minutes=20))
    alert(factories.slo(), now - timedelta(minutes=10), None, summary="Burns")

    content = text(page(browser_as("viewer").get("/switches/feature/nl2sql/")))

    assert "Alerts in the hour after it was engaged" in content
    assert "1 alert elsewhere" in content
    assert "Burns" in content


def test_ramp_page_lists_its_changes():
    ramp = start_ramp(plan=QUICK)

    content = text(page(browser_as("viewer").get(f"/ramps/{ramp.pk}/")))

    assert "Changes in the last hour" in content
    assert f"{ramp.switch_id} engaged" in content


def test_changes_before_several_times_are_summarized_at_once():
    now = db_now()
    write(now - timedelta(minutes=90), "slo.changed", ["slo:other"])
    write(now - timedelta(minutes=50), targets=["dependency:a->b", "dependency:a->c"])
    write(now - timedelta(minutes=40), "service.changed", ["service:core"])

    found = summarize_changes_before([now, now - timedelta(hours=1), now - timedelta(hours=3)])

    assert [(one.total, one.last) for one in found] == [
        (2, "Service core changed"),
        (1, "SLO other changed"),
        (0, ""),
    ]
    assert summarize_changes_before([]) == []


def test_attention_tells_the_last_change_before_an_alert():
    now = db_now()
    dependency("core->synapse", now - timedelta(hours=2))
    force(now - timedelta(minutes=20), "core", "synapse")
    found = alert(factories.slo(service="core"), now - timedelta(minutes=5), None, service="core")

    html = " ".join(page(browser_as("viewer").get("/attention/")).split())

    assert f'<a href="/alerts/{found.pk}/#changes"> 1 change in the hour before</a>' in html
    assert "last: core → synapse forced open for 1 h" in text(html)
    assert "core → synapse is forced open" in text(html)
