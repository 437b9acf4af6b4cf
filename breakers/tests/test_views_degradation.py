"""The bar above every page that says how far the installation has degraded."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.degradation import services
from controlplane.core.degradation_levels import Cause
from switches.tests.browsers import Tags, browser_as, page, text

pytestmark = pytest.mark.django_db

NEO4J = Cause(
    1, "neo4j", "Neo4j does not respond.", fails=("NL2SQL", "Ontology"), works=("Cases", "Watches")
)


def test_nothing_degraded_shows_no_bar():
    html = page(browser_as("viewer").get("/degradation/"))

    assert Tags(html).having("details") == []


@pytest.mark.parametrize("path", ["/", "/breakers/", "/audit/", "/ramps/"])
def test_every_page_says_level_cause_and_what_works(path):
    services.report([NEO4J], db_now())

    page_text = text(page(browser_as("viewer").get(path)))

    assert "Degraded level 1 of 3" in page_text.replace("Degradedlevel", "Degraded level")
    assert "Neo4j does not respond." in page_text
    assert "Does not work: NL2SQL · Ontology" in page_text
    assert "Works: Cases · Watches" in page_text


def test_bar_asks_for_itself_and_carries_the_time():
    services.report([NEO4J], db_now())

    response = browser_as("viewer").get("/degradation/", headers={"HX-Request": "true"})

    (bar,) = Tags(page(response)).having("div", id="degradation")
    assert (bar["hx-get"], bar["data-topics"]) == ("/degradation/", "degradation")
    assert response["Switchgear-Now"]


def test_more_causes_are_counted_beside_the_worst():
    worse = Cause(2, "redis-main", "The main Redis does not respond.")
    services.report([NEO4J, worse], db_now())

    page_text = text(page(browser_as("viewer").get("/degradation/")))

    assert page_text.index("The main Redis does not respond.") < page_text.index("Neo4j")
    assert "And 1 more." in page_text


def test_stranger_is_not_told(client):
    assert client.get("/degradation/").status_code == 302
