"""The dependency map, the fallback matrix and infrastructure."""

from datetime import timedelta

import pytest

from breakers.map import graph as map_graph
from breakers.map.graph import find_reachable
from breakers.models import Channel, Dependency, Probe, Service
from breakers.tests.house import dependency, discovered, minute, reports
from controlplane.core.clock import db_now
from switches.tests.browsers import Tags, browser_as, page, text

pytestmark = pytest.mark.django_db


def a_house():
    now = db_now()
    dependency("canvas->core", now, criticality="high")
    dependency("core->oracle", now, criticality="high")
    dependency("core->weaver", now, criticality="low")
    dependency("weaver->mindsdb", now, criticality="high")
    reports(dependency("oracle->neo4j", now, criticality="critical"), now, "open")


def node(html: str, slug: str) -> str:
    (found,) = Tags(html).having("a", id=f"node-{slug}")
    return str(found["class"])


def test_every_service_is_a_link_and_every_dependency_a_line():
    a_house()

    html = page(browser_as("viewer").get("/breakers/map/"))

    tags = Tags(html)
    boxes = [a for tag, a in tags.found if tag == "a" and "data-node" in a]
    lines = [a for tag, a in tags.found if tag == "a" and (a.get("id") or "").startswith("edge-")]
    assert (len(boxes), len(lines)) == (6, 5)
    assert {box["href"] for box in boxes} >= {"/breakers/map/?service=core"}


def test_box_shows_the_worst_of_what_guards_it():
    a_house()

    html = page(browser_as("viewer").get("/breakers/map/"))

    assert "node--open" in node(html, "neo4j")
    assert "node--open" not in node(html, "core")
    (box,) = Tags(html).having("a", id="node-neo4j")
    assert box["aria-label"] == "neo4j, open: called by 1, calls 0"


def test_box_tells_failing_closed_and_not_reported_apart():
    now = db_now()
    failing = dependency("core->vision", now)
    reports(failing, now)
    minute(failing, now, 1, success=60, failure=20, rejected=20)
    reports(dependency("core->oracle", now), now)
    dependency("core->weaver", now)

    html = page(browser_as("viewer").get("/breakers/map/"))

    assert "node--failing" in node(html, "vision")
    assert "node--closed" in node(html, "oracle")
    assert "node--unknown" in node(html, "weaver")
    (box,) = Tags(html).having("a", id="node-vision")
    assert box["aria-label"] == "vision, closed, failing: called by 1, calls 0"


def test_focus_tells_who_is_hit_and_what_it_needs():
    a_house()

    html = page(browser_as("viewer").get("/breakers/map/?service=core"))

    assert "node--is-focus" in node(html, "core")
    assert "node--is-up" in node(html, "canvas")
    assert "node--is-down" in node(html, "neo4j")


def test_only_unbroken_ways_of_grave_dependencies_hit_gravely():
    a_house()

    blast = map_graph.draw_map("mindsdb", db_now()).blast

    assert blast is not None
    assert list(blast.hit) == ["weaver", "core", "canvas"]
    assert list(blast.gravely) == ["weaver"]


def test_what_is_not_touched_steps_back():
    a_house()

    assert "node--is-off" in node(
        page(browser_as("viewer").get("/breakers/map/?service=oracle")), "weaver"
    )


def test_unknown_service_is_said_to_be_unknown():
    a_house()

    page_text = text(page(browser_as("viewer").get("/breakers/map/?service=nobody")))

    assert "No dependency has a service nobody" in page_text


def test_too_many_services_ask_for_one_and_draw_two_hops():
    now = db_now()
    for number in range(map_graph.MAX_DRAWN):
        discovered(f"s{number:03}->s{number + 1:03}", now)

    whole = map_graph.draw_map("", now)
    part = map_graph.draw_map("s050", now)

    assert not whole.drawn
    assert sorted(one.slug for one in part.nodes) == ["s048", "s049", "s050", "s051", "s052"]
    assert part.left_out == map_graph.MAX_DRAWN + 1 - 5


def test_what_is_reached_is_told_nearest_first_and_once_in_a_cycle():
    callees = {"a": ["b", "d"], "b": ["c"], "c": ["a"]}

    assert list(find_reachable(callees, "a").items()) == [("b", 1), ("d", 1), ("c", 2)]
    assert find_reachable(callees, "a", hops=1) == {"b": 1, "d": 1}


def test_gaps_come_first_the_missing_breaker_before_all():
    now = db_now()
    whole = {
        "timeout_ms": 1000,
        "runbook_url": "https://wiki/x",
        "fallback": {"mode": "cache"},
        "breaker": {},
    }
    dependency("core->whole", now, **whole)
    dependency("core->a-runbook", now, **{**whole, "runbook_url": ""})
    dependency("core->b-fallback", now, **{**whole, "fallback": {"mode": "none"}})
    dependency("core->c-breaker", now, **{**whole, "breaker": None, "criticality": "critical"})
    dependency("core->d-small", now, **{**whole, "breaker": None, "criticality": "low"})

    html = page(browser_as("viewer").get("/breakers/fallbacks/"))

    names = ("c-breaker/", "b-fallback/", "a-runbook/", "whole/", "d-small/")
    places = [html.index(f"/breakers/core/{name}") for name in names]
    assert places == sorted(places)
    assert "1 without a breaker 1 without a fallback" in text(html)
    assert "5 dependencies, 1 without a runbook, least protected first" in text(html)


def test_breaker_that_an_instance_reports_is_no_gap():
    now = db_now()
    reports(dependency("core->oracle", now, criticality="critical"), now)

    html = page(browser_as("viewer").get("/breakers/fallbacks/?gap=breaker"))

    assert "No matches" in text(html)


def test_runbook_of_the_callee_counts_for_its_callers():
    now = db_now()
    Service.objects.create(
        slug="oracle", name="Oracle", runbook_url="https://wiki/oracle", changed_at=now
    )
    dependency("core->oracle", now)

    html = page(browser_as("viewer").get("/breakers/fallbacks/"))

    assert "https://wiki/oracle" in html
    assert "no runbook" not in text(html)


def test_message_of_users_stands_with_its_translation():
    dependency(
        "core->oracle",
        db_now(),
        fallback={"code": "ORACLE_UNAVAILABLE", "message": "잠시 후", "message_en": "Later"},
    )

    page_text = text(page(browser_as("viewer").get("/breakers/fallbacks/")))

    assert "ORACLE_UNAVAILABLE" in page_text
    assert "잠시 후Later" in page_text


def test_infrastructure_shows_what_is_away_first_and_what_goes_on():
    now = db_now()
    redis = Service.objects.create(
        slug="redis", name="Redis", kind="store", level=2, probe_url="tcp://r:1", changed_at=now
    )
    neo4j = Service.objects.create(
        slug="neo4j",
        name="Neo4j",
        kind="store",
        loses=["NL2SQL"],
        keeps=["Cases"],
        probe_url="tcp://n:1",
        changed_at=now,
    )
    Service.objects.create(slug="aaa", name="Unasked", kind="store", level=3, changed_at=now)
    Probe.objects.create(service=redis, checked_at=now, took_ms=1.2)
    Probe.objects.create(
        service=neo4j,
        is_away=True,
        checked_at=now,
        since=now - timedelta(minutes=4),
        error="Connection refused",
    )

    html = page(browser_as("viewer").get("/breakers/infrastructure/"))

    assert "1 down" in text(html)
    assert html.index("Neo4j") < html.index("Redis") < html.index("Unasked")
    assert "Lost: NL2SQL" in text(html)
    assert "Still works: Cases" in text(html)


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (None, "Not checked yet"),
        ({"error": "inside is not on the public internet"}, "Not allowed to check"),
        ({"error": "connection failed", "failures": 2}, "No response"),
        ({"took_ms": 1.2}, "Responds"),
    ],
)
def test_infrastructure_says_what_a_probe_knows_and_no_more(probe, message):
    now = db_now()
    redis = Service.objects.create(
        slug="redis", name="Redis", kind="store", probe_url="tcp://r:1", changed_at=now
    )
    if probe is not None:
        Probe.objects.create(service=redis, checked_at=now, **probe)

    page_text = text(page(browser_as("viewer").get("/breakers/infrastructure/")))

    words = ("Not checked yet", "Not allowed to check", "No response", "Responds")
    assert [word for word in words if word in page_text] == [message]
    assert ("No outage detected" in page_text) == (message == "Responds")
    assert (probe or {}).get("error", "") in page_text


def test_infrastructure_does_not_repeat_an_old_probe():
    now = db_now()
    redis = Service.objects.create(
        slug="redis", name="Redis", kind="store", probe_url="tcp://r:1", changed_at=now
    )
    Probe.objects.create(service=redis, checked_at=now - timedelta(minutes=9), took_ms=1.2)

    page_text = text(page(browser_as("viewer").get("/breakers/infrastructure/")))

    assert "Unknown no update since" in page_text
    assert "No outage detected" not in page_text


def test_infrastructure_shows_the_ways_of_events_and_live_channels():
    now = db_now()
    Channel.objects.create(
        name="axiom:events vision",
        kind="stream",
        stream="axiom:events",
        producer="core",
        consumer="vision",
        group="vision_group",
        protocol="Redis Streams",
        changed_at=now,
    )
    Channel.objects.create(
        name="/agents/ws",
        kind="realtime",
        stream="/agents/ws",
        producer="core",
        protocol="WebSocket",
        purpose="Agents",
        changed_at=now,
    )

    page_text = text(page(browser_as("viewer").get("/breakers/infrastructure/")))

    assert "core → vision" in page_text
    assert "vision_group" in page_text
    assert "/agents/ws WebSocket Agents" in page_text


def test_infrastructure_says_in_words_how_a_worker_tries_again():
    retry = {
        "max_retries": 3,
        "backoff": "exponential",
        "delays_seconds": [2, 4, 8],
        "retry_on": ["Network error", 503],
        "never": ["Missing column"],
        "then": "dead letter queue",
    }
    Service.objects.create(slug="w", name="W", kind="worker", retry=retry, changed_at=db_now())

    page_text = text(page(browser_as("viewer").get("/breakers/infrastructure/")))

    assert "3 retries, exponential: after 2, 4, 8 s. On: Network error, 503." in page_text
    assert "Never on: Missing column. Then: dead letter queue." in page_text


def test_long_names_take_two_lines_and_do_not_look_alike():
    now = db_now()
    for slug, name in (("pg-one", "PostgreSQL (primary)"), ("pg-two", "PostgreSQL (read replica)")):
        Service.objects.create(slug=slug, name=name, changed_at=now)
        dependency(f"core->{slug}", now)

    page_text = text(page(browser_as("viewer").get("/breakers/map/")))

    assert "PostgreSQL (primary)" in page_text
    assert "PostgreSQL (read replica)" in page_text


def test_table_puts_what_is_not_reported_where_the_board_puts_it():
    now = db_now()
    reports(dependency("core->minor", now, criticality="low"), now)
    dependency("core->silent", now, criticality="critical")

    html = page(browser_as("viewer").get("/breakers/map/"))
    table = html.split('id="table-title"', 1)[1]

    assert table.index("minor") < table.index("silent")


def test_failing_calls_are_drawn_and_listed_though_the_breaker_is_closed():
    now = db_now()
    for name in ("core->calm", "core->vision"):
        reports(dependency(name, now), now)
    vision = Dependency.objects.get(callee="vision")
    minute(vision, now, 1, success=60, failure=20, rejected=20)

    html = page(browser_as("viewer").get("/breakers/map/"))

    assert Tags(html).having("a", id=f"edge-{vision.pk}", class_="edge edge--failing")
    assert "Closed, failing" in text(html)
    assert "20 % failed, 20 % rejected" in text(html)
    assert "closed, failing" in text(html.partition("map__key")[2].partition("Line width")[0])
