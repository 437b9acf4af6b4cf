"""Owners on the pages of SLOs and alerts, the filter by team, and what others are offered."""

from datetime import timedelta

import pytest

from controlplane.accounts.models import AuthorityRule
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, signed_in
from slo.arithmetic.minutes import last_ended
from slo.models import Alert
from switches.tests.browsers import Tags, browser, page, switches_shown, text

from . import factories
from .month_of_events import alert, excluded

pytestmark = pytest.mark.django_db
PAGE = "/slos/core-availability/"
REFUSED = "Payments owns slo:core-availability. Only its members may override it."


@pytest.fixture
def owner():
    """Return the browser of a member of Payments, which owns the SLOs of core."""
    pat = person("operator", "pat")
    lead = person("operator", "lee")
    patterns = ("slo:core-*", "dependency:core->*")
    create_team("payments", *patterns, members=[pat], leads=[lead])
    factories.slo()
    return browser(pat)


@pytest.fixture
def other(owner):
    sam = person("operator", "sam")
    create_team("search", members=[sam])
    return browser(sam)


def test_slo_names_its_owner_and_offers_exclusions_to_members_alone(owner, other):
    last = last_ended(db_now())
    made = excluded(factories.services.find_slo("core-availability"), last - 5, last - 3)

    seen, own = page(other.get(PAGE)), page(owner.get(PAGE))

    for html in (seen, own):
        assert "Owned by Payments" in text(html)
        assert f'id="exclusion-{made.pk}"' in html
    assert 'id="do-exclude"' not in seen
    assert REFUSED in text(seen)
    assert f"{PAGE}exclusions/{made.pk}/remove/" not in seen
    assert 'id="do-exclude"' in own
    assert REFUSED not in text(own)
    assert other.get(f"{PAGE}exclusions/new/").status_code == 403


def test_lead_finds_the_form_if_a_rule_lets_leads_edit(owner):
    lead = browser(User.objects.get(username="lee"))
    assert 'id="do-edit"' not in page(lead.get(PAGE))
    AuthorityRule.objects.create(action="edit", kind="slo", relation="owner", role="approver")

    assert 'id="do-edit"' in page(lead.get(PAGE))
    assert lead.get(f"{PAGE}edit/").status_code == 200


def test_board_is_filtered_by_team(owner, other):
    for name in ("web-availability", "web-latency"):
        factories.slo(name, service="web")

    html = page(owner.get("/slos/?team=mine"))

    assert switches_shown(html) == ["core-availability"]
    assert "Showing My teams; 2 more elsewhere." in text(html)
    assert set(switches_shown(page(owner.get("/slos/?team=unowned")))) == {
        "web-availability",
        "web-latency",
    }
    assert "1 more elsewhere" in text(page(owner.get("/slos/?team=mine&q=latency")))
    assert "No objective in Search matches." in text(page(owner.get("/slos/?team=search")))


def create_alerts():
    """Create an alert of Payments' SLO in a group with another, one of its dependency, one more."""
    since = db_now() - timedelta(minutes=9)
    slo = factories.services.find_slo("core-availability")
    first = alert(slo, since, None)
    Alert.objects.filter(pk=first.pk).update(group=first.pk)
    rule = {"kind": "threshold", "rule": "timeouts", "label": ""}
    alert(slo, since, None, subject="web->vision", group=first.pk, **rule)
    alert(slo, since, None, subject="core->oracle", **rule)
    alert(slo, since, None, subject="batch->oracle", **rule)


def test_alerts_are_filtered_by_team_with_their_whole_groups(owner, other):
    create_alerts()

    html = page(owner.get("/alerts/?team=mine"))
    rows = [one for one in Tags(html).having("li") if "data-switch" in one]

    assert {str(one.get("data-switch")).partition(" of ")[2] for one in rows} == {
        "core-availability",
        "web → vision",
        "core → oracle",
    }
    assert "Showing My teams; 1 more elsewhere, 1 critical." in text(html)
    assert "4 open alerts" in text(html)
    assert "batch → oracle" in text(page(owner.get("/alerts/?team=unowned")))


def test_alert_is_acknowledged_by_anyone_unless_a_rule_says_otherwise(owner, other):
    alert(factories.services.find_slo("core-availability"), db_now(), None)
    path = f"/alerts/{Alert.objects.get().pk}/"
    assert 'id="do-acknowledge"' in page(other.get(path))
    AuthorityRule.objects.create(action="extend", kind="slo", relation="owner", role="operator")

    seen = page(other.get(path))

    assert 'id="do-acknowledge"' not in seen
    assert "Payments owns slo:core-availability" in text(seen)
    assert other.get(f"{path}acknowledge/").status_code == 403
    assert 'id="do-acknowledge"' in page(owner.get(path))


def test_api_filters_slos_and_alerts_by_team(owner, other):
    factories.slo("web-latency", service="web")
    create_alerts()
    api = signed_in(User.objects.get(username="pat"))

    def find(path, key, wanted):
        return {one[key] for one in api.get(path, {"team": wanted}).json()["results"]}

    assert find("/slos/", "name", "mine") == {"core-availability"}
    assert find("/slos/", "name", "unowned") == {"web-latency"}
    assert find("/alerts/", "subject", "mine") == {"core-availability", "core->oracle"}
    assert find("/alerts/", "subject", "unowned") == {"web->vision", "batch->oracle"}
    assert api.get("/alerts/", {"team": "gone"}).status_code == 400


def test_rule_that_lets_owners_edit_offers_the_form_to_leads(owner):
    AuthorityRule.objects.create(action="edit", kind="slo", relation="owner", role="approver")

    lead = browser(User.objects.get(username="lee"))

    assert lead.get("/slos/new/").status_code == 200
    assert owner.get("/slos/new/").status_code == 403
