"""SLOs that a team owns: admins edit them, members exclude times, anyone acknowledges alerts."""

from datetime import timedelta

import pytest

from controlplane.accounts.models import AuthorityRule
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team, create_token_actor
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.comments import services as comments
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import Api, person
from slo.alerts import lifecycle
from slo.models import Alert, Exclusion, Slo
from slo.objectives import exclusions, services, spec_import
from slo.thresholds import services as thresholds

from .factories import slo

pytestmark = pytest.mark.django_db
NAME = "core-availability"
FIELDS = {"service": "core", "kind": "availability", "target": 0.99}
SYSTEM = system_actor("test")
WHY = "Database moved, announced as CHG-7"


@pytest.fixture
def owner():
    """Return an operator of Payments, which owns the SLOs of core."""
    pat = person("operator", "pat")
    lee = person("operator", "lee")
    create_team("payments", "slo:core-*", "service:core", members=[pat], leads=[lee])
    return pat.as_actor()


@pytest.fixture
def other(owner):
    sam = person("operator", "sam")
    create_team("search", members=[sam])
    return sam.as_actor()


def exclude(actor):
    now = db_now()
    hour = timedelta(hours=1)
    return exclusions.add_exclusion(
        name=NAME, starts_at=now - hour, ends_at=now, reason=WHY, actor=actor, now=now
    )


def put(actor, name=NAME):
    return services.put_slo(name=name, fields=FIELDS, actor=actor, now=db_now())


def alert(**fields):
    now = db_now()
    given = {"kind": "burn", "rule": "1h", "subject": NAME, "severity": "critical", **fields}
    return Alert.objects.create(opened_at=now, firing_at=now, **given)


def test_owner_excludes_times_and_others_do_not(owner, other):
    slo()

    with pytest.raises(Forbidden, match="Payments owns slo:core-availability") as refused:
        exclude(other)
    assert refused.value.extra["who_may"] == ["lee", "pat"]
    assert not Exclusion.objects.exists()
    made = exclude(owner).exclusion
    with pytest.raises(Forbidden):
        exclusions.remove_exclusion(name=NAME, exclusion_id=made.pk, actor=other, now=db_now())
    done = exclusions.remove_exclusion(name=NAME, exclusion_id=made.pk, actor=owner, now=db_now())
    assert done.exclusion.removed_by == owner.label


def test_admin_edits_without_being_a_member(owner):
    ada = person("admin", "ada")

    for actor in (ada.as_actor(), create_token_actor(ada)):
        put(actor)
        services.remove_slo(name=NAME, actor=actor, now=db_now())
    with pytest.raises(Forbidden, match="Only admins can change objectives"):
        put(owner)


def test_rule_lets_leads_edit_what_their_team_owns(owner):
    lead = User.objects.get(username="lee").as_actor()
    AuthorityRule.objects.create(action="edit", kind="slo", relation="owner", role="approver")

    put(lead)
    with pytest.raises(Forbidden):
        put(lead, "web-availability")
    with pytest.raises(Forbidden, match="the role approver or higher"):
        services.remove_slo(name=NAME, actor=owner, now=db_now())
    services.remove_slo(name=NAME, actor=lead, now=db_now())


def test_import_is_refused_as_a_whole_for_one_slo(owner):
    lead = User.objects.get(username="lee").as_actor()
    AuthorityRule.objects.create(action="edit", kind="slo", relation="owner", role="approver")
    documents = [open_slo("core-latency"), open_slo("web-latency")]

    with pytest.raises(Forbidden, match="slo:web-latency"):
        spec_import.import_slos(documents, actor=lead, now=db_now())
    assert not Slo.objects.exists()
    spec_import.import_slos(documents[:1], actor=lead, now=db_now())

    assert Slo.objects.get().name == "core-latency"


def open_slo(name):
    sources = {"type": "prometheus", "spec": {"query": "sum(rate(up[5m]))"}}
    metric = {"metricSource": sources}
    return {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": name},
        "spec": {
            "service": name.partition("-")[0],
            "budgetingMethod": "Occurrences",
            "objectives": [{"target": 0.99}],
            "timeWindow": [{"duration": "30d", "isRolling": True}],
            "indicator": {
                "metadata": {"name": f"{name}-sli"},
                "spec": {"ratioMetric": {"counter": True, "good": metric, "total": metric}},
            },
        },
    }


@pytest.mark.parametrize(
    ("fields", "resource"),
    [
        ({}, "slo:core-availability"),
        ({"kind": "threshold", "subject": "core->oracle"}, "dependency:core->oracle"),
        ({"kind": "threshold", "subject": "segment:finance"}, "segment:finance"),
        ({"kind": "threshold", "subject": "core/pool", "service": "core"}, "service:core"),
        ({"kind": "threshold", "subject": "latency"}, ""),
    ],
)
def test_alert_is_about_a_resource(fields, resource):
    assert alert(**fields).resource == resource


def test_anyone_on_call_acknowledges_and_a_rule_may_change_that(owner, other):
    lifecycle.acknowledge_alert(alert_id=alert().pk, actor=other, now=db_now())
    AuthorityRule.objects.create(action="extend", kind="", relation="owner", role="operator")
    second, third = alert(rule="6h"), alert(rule="3h", subject="web-availability")

    with pytest.raises(Forbidden):
        lifecycle.acknowledge_alert(alert_id=second.pk, actor=other, now=db_now())
    with pytest.raises(Forbidden):
        lifecycle.acknowledge_alerts(alert_ids=[second.pk, third.pk], actor=other, now=db_now())
    lifecycle.acknowledge_alerts(alert_ids=[third.pk], actor=other, now=db_now())
    lifecycle.acknowledge_alerts(alert_ids=[second.pk], actor=owner, now=db_now())


def test_limited_token_acknowledges_and_comments_within_its_limits(owner):
    token = create_token_actor(User.objects.get(pk=owner.user_id), only_owned=True)
    own, foreign = alert(), alert(subject="web-availability")

    def comment(on):
        return comments.add_comment(
            kind="alert", key=str(on.pk), text="Rolling back", actor=token, now=db_now()
        )

    lifecycle.acknowledge_alert(alert_id=own.pk, actor=token, now=db_now())
    assert comment(own).text == "Rolling back"
    with pytest.raises(Forbidden, match="what its own team owns"):
        lifecycle.acknowledge_alert(alert_id=foreign.pk, actor=token, now=db_now())
    with pytest.raises(Forbidden, match="what its own team owns"):
        comment(foreign)


def test_limited_token_of_an_admin_changes_no_threshold_rule(owner):
    token = create_token_actor(person("admin", "ada"), patterns=frozenset({"slo:*"}))

    with pytest.raises(Forbidden, match="limited to slo:"):
        thresholds.remove_rule(name="timeouts", actor=token, now=db_now())


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"patterns": ["slo:core-*"]}, 200),
        ({"patterns": ["service:core"]}, 200),
        ({"limit_to": ["core"], "patterns": ["experiment:*"]}, 200),
        ({"patterns": ["experiment:*"]}, 403),
        ({"only_owned": True}, 403),
    ],
)
def test_limited_token_pushes_points_within_its_limits(limits, status):
    slo()
    sam = person("operator", "sam")
    create_team("search", "slo:web-*", members=[sam])
    _, text = tokens.create_token(
        name="ci", owner=sam, scopes=["slo:write"], actor=SYSTEM, now=db_now(), **limits
    )
    point = {"slo": NAME, "source": "a", "good": 9, "total": 10}

    answer = Api(authorization=f"Bearer {text}").post("/sli/", {"points": [point]})

    assert answer.status_code == status
