"""Postmortem drafts: known facts in order, and hostile text escaped."""

import re
from datetime import timedelta

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.runbooks import markdown
from controlplane.core.runbooks.markdown import escape_markdown
from slo.arithmetic.minutes import last_ended
from slo.models import Alert
from slo.postmortems import alert_timeline, draft
from switches.emergency.tests import orders
from switches.models import Episode
from switches.tests.browsers import engaged

from .factories import OPERATOR, counted, slo

pytestmark = pytest.mark.django_db
HEADINGS = [
    "Summary", "Timeline", "Root cause", "Impact analysis", "Response", "Prevention",
]  # fmt: skip


@pytest.fixture
def now():
    return db_now()


def alert(now, **fields):
    columns = {
        "kind": Alert.Kind.BURN,
        "rule": "1h/5m>14 page",
        "subject": "core-availability",
        "service": "core",
        "severity": "critical",
        "label": "page",
        "summary": "core-availability burned its error budget at 15× the allowed rate over 1h",
        "path": "/slos/core-availability/",
        "opened_at": now - timedelta(minutes=40),
        "firing_at": now - timedelta(minutes=12),
        "resolved_at": now - timedelta(minutes=10),
        "resolved_because": "Its rule has not fired for two minutes.",
    }
    return Alert.objects.create(**{**columns, **fields})


def times(text):
    return re.findall(r"^\| (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC \|", text, re.MULTILINE)


def line(text, begin):
    return next(one for one in text.splitlines() if one.startswith(f"- {begin}"))


def test_every_heading_is_there_in_order(now):
    text = draft.write_draft(alert(now), now)

    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert text.startswith("# Postmortem: core-availability burned")
    assert "| Item | Owner | Due | State |" in text


def test_dependency_is_named_as_on_screens(now):
    about = "core->oracle"
    one = alert(now, subject=about, path="/breakers/core/oracle/", evidence={"dependency": about})

    text = draft.write_draft(one, now)

    assert "- dependency: core → oracle" in text
    assert r"-\>" not in text


def test_text_that_people_wrote_is_unchanged(now):
    reason = "Moved traffic a->b, see core->oracle"
    audit.record(
        actor=OPERATOR,
        action="override.set",
        target="dependency:core->oracle",
        reason=reason,
        now=now - timedelta(minutes=45),
    )

    text = draft.write_draft(alert(now, summary="Queue a->b is full"), now)

    assert text.startswith(r"# Postmortem: Queue a-\>b is full")
    assert r"Moved traffic a-\>b, see core-\>oracle" in text


def test_summary_says_when_it_began_and_was_over_and_how_bad_it_was(now):
    one = alert(now)

    text = draft.write_draft(one, now)

    assert line(text, "Began") == f"- Began: {one.opened_at:%Y-%m-%d %H:%M:%S} UTC"
    assert line(text, "Recovered") == (
        f"- Recovered: {one.resolved_at:%Y-%m-%d %H:%M:%S} UTC, after 30 min"
    )
    assert line(text, "Severity") == "- Severity: critical (page)"


def test_one_that_is_not_over_says_so(now):
    text = draft.write_draft(alert(now, resolved_at=None, resolved_because=""), now)

    assert "- Recovered: not yet, 40 min after it began" in text


def test_timeline_has_alert_calls_acknowledgement_and_audit_trail_in_order(now):
    one = alert(now)
    subject = f"alert:{one.pk}"
    called = {"at": (now - timedelta(minutes=39)).isoformat(), "who": ["Kim", "Lee"]}
    Escalation.objects.create(
        subject=subject, event="slo.alert", severity="critical", opened_at=one.opened_at,
        facts={"told": [called]},
    )  # fmt: skip
    noted = [
        (subject, "alert.acknowledged", 36, "I am on it"),
        ("segment:finance", "switch.engaged", 30, "oracle answers 502"),
        ("dependency:core->oracle", "override.set", 65, "before it began"),
        ("segment:finance", "switch.released", 1, "afterwards"),
        ("user:kim", "session.started", 35, ""),
        ("segment:b2b", "switch.engaged", 80, "long before"),
    ]
    for target, action, minutes, reason in sorted(noted, key=lambda each: -each[2]):
        at = now - timedelta(minutes=minutes)
        audit.record(actor=OPERATOR, action=action, target=target, reason=reason, now=at)

    text = draft.write_draft(one, now)

    found = times(text)
    assert found == sorted(found)
    said = [row.split("|")[2].strip() for row in text.splitlines() if " UTC |" in row]
    assert [re.split(r"[:(]", each)[0].strip() for each in said] == [
        "dependency",
        "Opened",
        "Escalated to Kim, Lee",
        "Acknowledged",
        "segment",
        "Resolved",
        "segment",
    ]
    assert "core → oracle: override set (by user:olga): before it began" in said[0]
    assert "I am on it" in said[3]
    assert "session" not in text
    assert "long before" not in text


def test_files_that_were_loaded_are_one_row_of_the_timeline(now):
    one = alert(now)
    for number in range(40):
        at = now - timedelta(minutes=50) + timedelta(milliseconds=number)
        for kind in ("service", "dependency"):
            target = f"{kind}:s{number}"
            audit.record(
                actor=system_actor("provision"), action=f"{kind}.registered", target=target, now=at
            )
    at = now - timedelta(minutes=45)
    audit.record(
        actor=system_actor("provision"), action="service.registered", target="service:z", now=at
    )

    text = draft.write_draft(one, now)

    rows = [row for row in text.splitlines() if "registered" in row]
    assert len(rows) == 3
    assert "service registered, 40 times: service:s0, service:s1, service:s2 and 37 more" in text
    assert "service:z: service registered" in text


def test_few_rows_that_are_alike_stay_apart(now):
    one = alert(now)
    for number in range(alert_timeline.MAX_UNGROUPED):
        at = now - timedelta(minutes=20) + timedelta(seconds=number)
        audit.record(actor=OPERATOR, action="switch.engaged", target=f"feature:f{number}", now=at)

    text = draft.write_draft(one, now)

    assert all(
        f"feature:f{number}: switch engaged" in text
        for number in range(alert_timeline.MAX_UNGROUPED)
    )


def test_timeline_that_is_too_long_is_cut_and_says_so(now, monkeypatch):
    monkeypatch.setattr(alert_timeline, "MAX_EVENTS", 2)
    one = alert(now)
    for minutes in (30, 29, 28):
        at = now - timedelta(minutes=minutes)
        audit.record(actor=OPERATOR, action="slo.changed", target="slo:x", now=at)

    assert "Only the first 2 events" in draft.write_draft(one, now)


@pytest.mark.parametrize(
    ("switch", "scope"),
    [
        ("segment:finance", "tenant finance"),
        ("feature:what-if", "feature what-if"),
        ("global:all", "everything"),
    ],
)
def test_scope_is_that_of_what_was_stopped_meanwhile(now, switch, scope):
    engaged(switch)
    Episode.objects.update(engaged_at=now - timedelta(minutes=20))

    text = draft.write_draft(alert(now), now)

    assert line(text, "Impact scope") == f"- Impact scope: {scope}"
    assert f"{switch} was stopped from" in text


def test_what_was_stopped_only_afterwards_is_no_part_of_the_impact(now):
    engaged("segment:finance")

    text = draft.write_draft(alert(now), now)

    assert line(text, "Impact scope") == f"- Impact scope: {draft.SCOPE_QUESTION}"
    assert "was stopped from" not in text


def test_subject_of_a_threshold_rule_may_say_whom_it_hit(now):
    one = alert(now, kind="threshold", rule="kill-switch", subject="segment:finance", label="")

    assert line(draft.write_draft(one, now), "Impact scope") == "- Impact scope: tenant finance"


@pytest.mark.parametrize(
    ("severity", "said"),
    [
        ("critical", "by user:kim, 7 min after it opened (target: within 5 min)"),
        ("warning", "by user:kim, 7 min after it opened (target: within 30 min)"),
        ("info", "by user:kim, 7 min after it opened (target: on the next working day)"),
    ],
)
def test_answer_is_measured_by_the_escalation_matrix(now, severity, said):
    known = now - timedelta(minutes=33)
    one = alert(now, severity=severity, acknowledged_at=known, acknowledged_by="user:kim")

    assert line(draft.write_draft(one, now), "Acknowledged") == f"- Acknowledged: {said}"


def test_nobody_who_acknowledged_is_told_of(now):
    assert "no (target: within 5 min)" in draft.write_draft(alert(now), now)


def test_counters_behind_it_are_a_table(now):
    windows = {
        "1h": {"total": 12000, "bad": 180.0, "burn_rate": 15.0},
        "5m": {"total": 1000, "bad": None, "burn_rate": None},
    }

    text = draft.write_draft(alert(now, evidence={"windows": windows}), now)

    assert "| 1h | 12,000 | 180 | 15 |" in text
    assert "| 5m | 1,000 | unknown | unknown |" in text


def test_budget_that_was_spent_is_what_was_counted(now):
    objective = slo("core-availability", target=0.99)
    end = last_ended(now)
    rows = [(end - 5_000, 0, 0), (end - 120, 9_980, 10_000), (end - 30, 10_450, 10_500)]
    counted(objective, [*rows, (end, 19_930, 20_000)])
    one = alert(now, slo=objective, evidence={"windows": {"1h": {}, "5m": {}}})

    text = draft.write_draft(one, now)

    # In the end 10,500 events, of which 105 may be bad and 50 are; 30 of them since an hour before.
    assert line(text, "Error budget spent") == (
        "- Error budget spent: 28.6 % of that of 30 days; 52.4 % of it was left at the end"
    )


def test_budget_of_which_too_little_is_known_is_not_known(now):
    text = draft.write_draft(alert(now, slo=slo()), now)

    assert line(text, "Error budget spent").endswith("unknown: too few events were counted")


EVIL = "a | b <script>alert(1)</script> [x](javascript:alert(1)) *b* _i_ `c` \n# h\n\n- l ![i](//e)"


def test_words_of_people_mean_nothing_in_it(now):
    said = {"summary": EVIL, "subject": EVIL[:200], "rule": EVIL[:150], "acknowledged_by": EVIL}
    more = {"acknowledged_at": now - timedelta(minutes=39), "evidence": {EVIL: EVIL}}
    one = alert(now, path="", **said, **more)
    at = now - timedelta(minutes=30)
    audit.record(actor=OPERATOR, action="slo.changed", target=EVIL[:150], reason=EVIL, now=at)

    text = draft.write_draft(one, now)
    html = str(markdown.render_html(text))

    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    for mark in ("<script", "<em>b", "<em>i", "<code>", "<img", 'javascript:alert(1)"', "<h1>h"):
        assert mark not in html
    assert html.count("<h1>") == 1
    widths = {row.count("<td>") for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)}
    assert widths <= {0, 2, 4}
    assert "a | b &lt;script&gt;" in html


@pytest.mark.parametrize(
    "text", ["- x", "+ x", "# x", "1. x", "12) x", "= x", "a | b", "&lt;", "~~x~~"]
)
def test_plain_text_reads_as_it_was_written(text):
    html = markdown.render_html(f"- {escape_markdown(text)}")

    shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert html == f"<ul>\n<li>{shown}</li>\n</ul>\n"


def test_plain_text_is_one_short_line():
    assert escape_markdown("a\n\tb\u202ec") == "a b c"
    assert escape_markdown("x" * 600) == "x" * 499 + "…"


def test_emergency_orders_are_in_the_timeline_at_the_time_of_the_data_plane(now):
    orders.store("segment:finance", at=now - timedelta(minutes=20), plane="dp-7")
    orders.reconcile(now)

    text = draft.write_draft(alert(now), now)

    order = "segment:finance: emergency order on the data plane dp-7"
    row = next(one for one in text.splitlines() if order in one)
    assert f"{now - timedelta(minutes=20):%H:%M:%S} UTC" in row
    assert "(by user:kim): card payments charged twice" in row
