"""The level of degradation, and the page of a data plane that runs alone."""

import pytest

from controlplane.core.degradation import judge
from controlplane.dataplane.tests.served import BEARER, REPORTER, ask, credential, plane


@pytest.mark.parametrize(
    ("database", "redis", "level", "causes"),
    [(True, True, 0, 0), (True, False, 2, 1), (False, True, 3, 1), (False, False, 3, 2)],
)
def test_level_is_that_of_the_worst_cause(
    database: bool, redis: bool, level: int, causes: int
) -> None:
    found, said = judge(database, redis)

    assert (found, len(said)) == (level, causes)


def test_everything_there_is_normal() -> None:
    served = plane()
    served.state.database_reachable = True

    answer = ask(served, "GET", "/api/v1/degradation", BEARER)

    assert answer.json() == {"level": 0, "name": "normal", "causes": []}


def test_a_database_that_is_away_is_an_emergency_with_its_cause() -> None:
    answer = ask(plane(), "GET", "/api/v1/degradation/", BEARER)
    assert answer.status_code == 308

    answer = ask(plane(), "GET", "/api/v1/degradation", BEARER)

    assert (answer.json()["level"], answer.json()["name"]) == (3, "emergency")
    assert "PostgreSQL" in answer.json()["causes"][0]


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

    answer = ask(served, "GET", "/")

    assert answer.status_code == 200
    assert "confirmed 90 seconds ago" in answer.text
    assert "killswitch engage" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_the_page_of_a_plane_with_nothing_to_serve_says_so() -> None:
    served = plane()
    served.state.copy = None

    assert "nothing to serve yet" in ask(served, "GET", "/").text
