"""The degradation level, and the front page of a standalone data plane."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.db import connection

from controlplane.core.degradation.models import Degradation
from controlplane.core.degradation_levels import READ_ONLY, Cause, assess, to_json
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.serving import landing_page, responses
from controlplane.dataplane.sync import snapshot_keeper
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.copies import read_policies
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.served import BEARER, REPORTER, ask, credential, plane
from controlplane.dataplane.tests.test_order_set import order, withdrawal


@pytest.mark.parametrize(
    ("database", "redis", "level", "causes"),
    [(True, True, 0, 0), (True, False, 2, 1), (False, True, 3, 1), (False, False, 3, 2)],
)
def test_level_is_that_of_the_worst_cause(
    database: bool, redis: bool, level: int, causes: int
) -> None:
    found, words = assess(database, redis)

    assert (found, len(words)) == (level, causes)


def test_everything_there_is_normal() -> None:
    served = plane()
    served.state.database_reachable = True

    response = ask(served, "GET", "/api/v1/degradation", BEARER)

    assert response.json() == {"level": 0, "name": "normal", "causes": [], "effects": []}


def test_a_database_that_is_away_is_an_emergency_with_its_cause() -> None:
    response = ask(plane(), "GET", "/api/v1/degradation/", BEARER)
    assert response.status_code == 308

    response = ask(plane(), "GET", "/api/v1/degradation", BEARER)

    assert (response.json()["level"], response.json()["name"]) == (3, "emergency")
    assert "PostgreSQL" in response.json()["causes"][0]
    assert any("/emergency/" in work for work in response.json()["effects"][0]["works"])


def test_an_open_emergency_order_is_a_cause_until_it_is_withdrawn() -> None:
    served = plane()
    served.state.database_reachable = True
    served.state.add_orders([order(1)])

    present = ask(served, "GET", "/api/v1/degradation", BEARER).json()
    page = ask(served, "GET", "/").text
    served.state.add_orders([withdrawal(2, 1)])
    after = ask(served, "GET", "/api/v1/degradation", BEARER).json()

    assert (present["level"], len(present["causes"])) == (2, 1)
    assert present["causes"][0].startswith("1 emergency order blocks its switch")
    assert "1 emergency order blocks its switch" in page
    assert after["level"] == 0


def test_a_token_that_reads_breakers_may_ask_too_and_one_that_reports_may_not() -> None:
    served = plane()
    breakers = "sg_breakers01_secret"
    tokens = dict(served.state.tokens or {})
    tokens[b"breakers01"] = credential(breakers, "breakers:read")
    served.state.install_tokens(2, tokens)

    for token, status in ((breakers, 200), (REPORTER, 403)):
        headers = {"X-API-Key": token}
        assert ask(served, "GET", "/api/v1/degradation", headers).status_code == status


def test_the_page_of_a_plane_alone_says_what_works_and_how_fresh_it_is() -> None:
    served = plane()
    served.state.confirm(served.state.now() - 90)

    response = ask(served, "GET", "/")

    assert response.status_code == 200
    assert "confirmed 1 min 30 s ago" in response.text
    assert "killswitch engage" in response.text
    assert '<a href="/emergency/"><strong>Stop something now</strong></a>' in response.text
    assert "can't change" not in response.text
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_the_page_of_a_relay_says_nothing_of_a_database() -> None:
    served = plane()
    served.state.is_relay = True
    served.state.confirm(served.state.now() - 90)

    page = ask(served, "GET", "/").text

    assert "<h1>Switchgear relay</h1>" in page
    assert "Up to date with its upstream. The served data was confirmed 1 min 30 s ago." in page
    assert "the database" not in page.lower()
    assert ask(served, "GET", "/health/ready/data").json()["source"] == "upstream"


def test_the_page_of_a_plane_with_nothing_to_serve_says_so() -> None:
    served = plane()
    served.state.copy = None

    assert "Nothing to serve yet" in ask(served, "GET", "/").text


ORACLE = Cause(
    2,
    "core->oracle",
    "core->oracle is open in 3 of 4 instances <INC-7>.",
    since="2026-11-21T12:00:00.000000Z",
    fails=("Analysis",),
    works=("Dashboards",),
)


def test_what_the_database_told_of_last_is_told_beside_our_own_stores() -> None:
    served = plane()
    served.state.install_causes(4, (ORACLE,))
    served.state.database_reachable = True

    response = ask(served, "GET", "/api/v1/degradation", BEARER).json()

    assert (response["level"], response["name"], response["causes"]) == (
        2,
        "critical",
        [ORACLE.text],
    )
    assert response["effects"] == [
        {
            "level": 2,
            "what": "core->oracle",
            "since": ORACLE.since,
            "fails": ["Analysis"],
            "works": ["Dashboards"],
        }
    ]
    served.state.database_reachable = False
    response = ask(served, "GET", "/api/v1/degradation", BEARER).json()
    assert (response["level"], len(response["causes"])) == (3, 2)


def test_the_page_says_the_level_and_names_our_own_stores_only() -> None:
    """The page requires no sign-in."""
    served = plane()
    served.state.database_reachable = True
    assert "No outage detected" in ask(served, "GET", "/").text

    served.state.install_causes(4, (ORACLE, replace(ORACLE, what="postgresql")))
    page = ask(served, "GET", "/").text

    assert "Level 2: critical" in page
    assert (
        "2 causes in addition to our own stores; see <code>GET /api/v1/degradation</code>" in page
    )
    for secret in ("oracle", "INC-7", "Analysis", "Dashboards"):
        assert secret not in page
    served.state.redis_reachable = False
    served.state.install_causes(5, (ORACLE,))
    page = ask(served, "GET", "/").text
    assert "1 cause in addition to our own stores" in page
    assert "Redis does not respond" in page
    assert "Does not work: Live updates; " in page
    assert "Works: Engaging and releasing; " in page


@pytest.mark.django_db(transaction=True)
def test_causes_arrive_with_their_revision_and_survive_a_restart_without_database(
    idle: Following, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_keeper, "REST_SECONDS", 0.1)
    idle.config = replace(idle.config, folder=tmp_path, signing_key=b"key")
    idle.start()
    # A newer release may add fields.
    causes = [{**one, "severity": "odd"} for one in to_json([ORACLE])]
    Degradation.objects.update(revision=5, level=2, causes=causes)
    wait_until(lambda: idle.state.causes == (ORACLE,), 3)
    wait_until(lambda: b"Dashboards" in read_policies(tmp_path), 5)

    Degradation.objects.update(revision=6, level=0, causes=[])
    wait_until(lambda: idle.state.causes == (), 3)
    Degradation.objects.update(revision=7, level=2, causes=causes)
    wait_until(lambda: idle.state.causes == (ORACLE,), 3)
    wait_until(lambda: b'"revision":7' in read_policies(tmp_path), 5)
    idle.stop()
    idle.database.cut()
    idle.plane = Plane()
    idle.start()

    response = ask(idle.plane, "GET", "/").text
    assert "Level 3: emergency" in response
    assert "1 cause in addition to our own stores" in response
    assert idle.state.causes == (ORACLE,)


def test_a_read_only_database_is_followed_and_an_emergency(idle: Following) -> None:
    name = connection.ops.quote_name(str(connection.settings_dict["NAME"]))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            idle.start()
            wait_until(lambda: idle.state.heard_database, 5)
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")

    assert READ_ONLY.text in responses.degradation_status(idle.state)["causes"]
    assert READ_ONLY.text in landing_page.render_page(idle.state)[2].decode()

    idle.database.cut()
    idle.database.mend()

    wait_until(lambda: READ_ONLY not in idle.state.known_causes(), 5)
