"""Tests of the dependents that a switch's preview lists."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from switches.api.shapes import PreviewShape
from switches.tests.browsers import REASON, browser_as, page, text
from switches.tests.instances import report_checks

from .house import dependency, reports

pytestmark = pytest.mark.django_db

FORM = {"scope": "segment", "key": "finance", "reason": REASON, "how_long": "24h"}


@pytest.fixture
def called():
    now = db_now()
    report_checks("core/a1", "segment:finance", at=now, per_second=10)
    dependency("canvas->core", now, criticality="critical")
    reports(dependency("batch->core", now, criticality="low"), now)


def test_preview_names_dependents_as_its_schema_says(called):
    (found,) = as_role("operator").get("/switches/segment/finance/preview").json()["dependents"]

    assert found == {
        "service": "core",
        "callers_total": 2,
        "callers": [
            {
                "service": "batch",
                "dependency": "batch->core",
                "criticality": "low",
                "was_reported": True,
            },
            {
                "service": "canvas",
                "dependency": "canvas->core",
                "criticality": "critical",
                "was_reported": False,
            },
        ],
    }
    assert set(PreviewShape().fields["dependents"].child.fields) == found.keys()


@pytest.mark.parametrize("part", ["dialog", "preview"])
def test_whoever_is_about_to_engage_sees_what_calls_the_services_hit(called, part):
    browser = browser_as("operator")
    dialog = {"HX-Request": "true", "HX-Target": "dialog-body"}
    if part == "dialog":
        response = browser.get("/switches/engage/?scope=segment&key=finance", headers=dialog)
    else:
        response = browser.post("/switches/engage/preview/", FORM, headers=dialog)

    assert "core is called by batch, canvas (critical, no data)" in text(page(response))
