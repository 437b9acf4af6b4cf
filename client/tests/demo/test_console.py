"""Sentences about switches and ramps, from a console that is a real local HTTP server."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from demo import console
from demo.faults import Faults
from demo.http_service import FaultyService, ServiceResponse, run_service
from switchgear import Change

SWITCH = "feature:nl2sql"
AGAIN = Change(SWITCH, "ramping", "engaged", "Wrong figures", 0.0, 7)


@pytest.fixture
def ramps() -> list[Mapping[str, Any]]:
    """The ramps that the console returns, newest first."""
    return []


@pytest.fixture(autouse=True)
def served(
    ramps: list[Mapping[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    (tmp_path / "token").write_text("sg_abc_secret\n")
    routes = {("GET", "/api/v1/ramps/"): lambda _: ServiceResponse(200, {"results": ramps})}
    with run_service(FaultyService(routes, Faults()), poll_seconds=0.01) as port:
        monkeypatch.setenv("SWITCHGEAR_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("DEMO_TOKEN_FILE", str(tmp_path / "token"))
        yield


def ended_ramp(error: str, compensated_at: str | None = "2026-11-28T16:00:00Z") -> dict[str, Any]:
    return {"compensated_at": compensated_at, "error": error}


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([], "feature:nl2sql is engaged"),
        ([ended_ramp("", None)], "feature:nl2sql is engaged"),
        (
            [ended_ramp("A gate failed: x"), ended_ramp("Earlier")],
            "the ramp of feature:nl2sql was aborted, so it is engaged again: A gate failed: x",
        ),
    ],
)
def test_an_engagement_after_a_ramp_says_why(
    ramps: list[Mapping[str, Any]], found: list[Mapping[str, Any]], sentence: str
) -> None:
    ramps.extend(found)

    assert console.describe_change(AGAIN) == sentence


def test_a_step_of_a_ramp_says_its_share() -> None:
    change = Change(SWITCH, "engaged", "ramping", "Wrong figures", 5.0, 7)

    assert (
        console.describe_change(change)
        == "feature:nl2sql is ramping: 5 % of its traffic is allowed"
    )


def test_unreachable_console_is_said_to_be_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHGEAR_URL", "http://127.0.0.1:1")

    assert "its ramp can't be read" in console.describe_change(AGAIN)
    assert "did not say which switches are still engaged" in console.describe_leftovers()


def test_leftovers_are_named_with_their_release_commands() -> None:
    found = {"engaged": [{"id": "global:all", "state": "engaged"}], "ramping": []}

    lines = console.describe_leftovers(lambda _, state: found[state]).splitlines()

    assert lines == [
        "still engaged: global:all (engaged). To release, after the next start:",
        ".venv/bin/python manage.py killswitch release --global --mode immediate"
        " --reason 'The demo is over'",
    ]
    assert console.describe_leftovers(lambda *_, **__: []) == ""
