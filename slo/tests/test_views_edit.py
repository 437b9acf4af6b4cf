"""The forms to create, change and remove an SLO, with a preview of changes."""

import pytest

from slo.models import Slo
from slo.objectives import services
from slo.views.drafts import Draft
from switches.tests.browsers import browser_as, page, text

from . import factories
from .factories import ADMIN

pytestmark = pytest.mark.django_db
EDIT = "/slos/core-availability/edit/"
WHY = "the gateway counts them now, CHG-17"


def part(name):
    return {"HX-Request": "true", "HX-Target": name}


def form_data(**fields):
    """Return the form of a new SLO with the usual rules, as a browser sends it."""
    rules = {
        "rule-0-long": "1h", "rule-0-short": "5m", "rule-0-burn_rate": "14",
        "rule-0-severity": "page",
    }  # fmt: skip
    values = {"kind": "availability", "target": "99.9", "window_days": "30", "source": "push"}
    return {**values, **rules, **fields}


def as_it_stands(slo, **fields):
    document = {**services.documents.to_document(slo), "name": slo.name}
    return {**dict(Draft.from_document(document).hidden()), "version": slo.version, **fields}


def test_new_one_is_made_and_its_page_opens():
    sent = form_data(name="core-availability", service="core", do="save", reason=WHY)

    response = browser_as("admin").post("/slos/new/", sent)

    assert (response.status_code, response["Location"]) == (302, "/slos/core-availability/")
    slo = services.find_slo("core-availability")
    assert slo.rules == [{"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"}]
    assert float(slo.target) == 0.999


def test_name_that_is_taken_is_refused_and_changes_nothing():
    factories.slo(target=0.99)

    response = browser_as("admin").post(
        "/slos/new/", form_data(name="core-availability", do="save")
    )

    assert response.status_code == 409
    assert float(Slo.objects.get().target) == 0.99


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": "100"}, "Must be a share above 0 and below 1"),
        ({"rule-0-burn_rate": "1000"}, "never exceeds 1,000"),
        ({"rule-0-short": "90s"}, "whole minutes"),
        ({"source": "prometheus", "url": "http://me:pw@prom/"}, "Leave out the user and password"),
        ({"kind": "latency"}, "the milliseconds within which"),
        ({"name": "thresholds"}, "reserved for a page"),
    ],
)
def test_what_is_wrong_is_said_beside_it_and_nothing_is_lost(fields, message):
    sent = form_data(
        **{"name": "core-availability", "do": "save", "description": "Kept.", **fields}
    )

    response = browser_as("admin").post("/slos/new/", sent)

    html = page(response)
    assert response.status_code == 422
    assert message in text(html)
    assert "Kept." in html
    assert not Slo.objects.exists()


def test_preview_tells_what_would_change_and_what_it_means():
    slo = factories.slo()
    sent = as_it_stands(slo, target="99.95")

    html = text(page(browser_as("admin").post(EDIT, sent, headers=part("preview"))))

    assert "21 min 36 s of full outage" in html
    assert "1 event in 2,000" in html
    assert "1 change Changes target 99.9 % 99.95 %" in html
    assert float(services.find_slo(slo.name).target) == 0.999


def test_rules_of_a_preset_are_scaled_to_the_period_and_left_unsaved():
    slo = factories.slo(window_days=7)
    sent = as_it_stands(slo, do="preset-workbook")

    response = browser_as("admin").post(EDIT, sent, headers=part("rules"))

    assert 'value="3.36"' in page(response)  # 2 % of 7 days in an hour
    assert "rows" in response["HX-Trigger"]
    assert len(services.find_slo(slo.name).rules) == 2


def test_row_is_added_without_a_script_too():
    slo = factories.slo()

    html = page(browser_as("admin").post(EDIT, as_it_stands(slo, do="add-rule")))

    assert 'name="rule-2-long"' in html


def test_saved_change_is_in_the_trail_with_its_reason():
    slo = factories.slo()

    browser = browser_as("admin")
    browser.post(EDIT, as_it_stands(slo, target="99.5", do="save", reason=WHY))

    assert float(services.find_slo(slo.name).target) == 0.995
    trail = text(page(browser.get("/slos/core-availability/")))
    assert WHY in trail


def test_nobody_overwrites_what_somebody_else_saved_meanwhile():
    slo = factories.slo()
    sent = as_it_stands(slo, target="99.5", do="save")
    services.put_slo(
        name=slo.name, fields={**services.documents.to_document(slo), "owner": "ada"}, actor=ADMIN,
        now=slo.created_at,
    )  # fmt: skip

    response = browser_as("admin").post(EDIT, sent)

    assert response.status_code == 409
    assert float(services.find_slo(slo.name).target) == 0.999


def test_form_that_nobody_touched_changes_nothing():
    slo = factories.slo()

    response = browser_as("admin").post(EDIT, as_it_stands(slo, do="save"))

    assert response.status_code == 302
    assert services.find_slo(slo.name).version == slo.version


@pytest.mark.parametrize("path", ["/slos/new/", EDIT, "/slos/core-availability/remove/"])
@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_may(path, role):
    factories.slo()

    browser = browser_as(role)

    assert browser.get(path).status_code == 403
    assert browser.post(path, {"do": "save"}).status_code == 403
    assert Slo.objects.present().count() == 1


def test_removed_one_is_gone_and_the_form_says_what_that_means():
    factories.slo()
    browser = browser_as("admin")
    assert "Ramps with a gate on it hold" in text(
        page(browser.get("/slos/core-availability/remove/"))
    )

    response = browser.post("/slos/core-availability/remove/", {"reason": WHY})

    assert (response.status_code, response["Location"]) == (302, "/slos/")
    assert not Slo.objects.present().exists()


@pytest.mark.parametrize("path", [EDIT, "/slos/core-availability/remove/"])
def test_one_that_is_not_there_is_not_found(path):
    assert browser_as("admin").get(path).status_code == 404
