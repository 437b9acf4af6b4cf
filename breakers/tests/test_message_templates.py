"""Messages about overrides and outages."""

import pytest

from breakers.outages.services import watch_outages
from breakers.services import overrides
from breakers.tests.fleet import NOW, SECOND, dependency, list_outbox_messages, reachable, reports
from controlplane.core.actors import system_actor
from controlplane.core.outbox import renderer

pytestmark = pytest.mark.django_db
KIM = system_actor("kim")


@pytest.fixture(autouse=True)
def _somewhere(settings):
    reachable(settings)


def read(event):
    (message,) = list_outbox_messages(event)
    notice = renderer.render(message.event, message.payload)
    return message.severity, notice.title, dict(notice.lines), notice.path


def force():
    dependency()
    return overrides.set_override(
        caller="core",
        callee="oracle",
        mode="forced_open",
        reason="the provider answers nonsense, INC-77",
        expires_in="30m",
        actor=KIM,
        now=NOW,
    )


def test_an_override_says_who_why_and_for_how_long():
    force()

    severity, title, lines, path = read("override.set")

    assert (severity, path) == ("warning", "/breakers/core/oracle/")
    assert title == "core → oracle is overridden: forced open"
    assert lines["By"] == "system:kim"
    assert lines["Reason"] == "the provider answers nonsense, INC-77"
    assert lines["For"] == "30 min"
    assert lines["Until"] == "2026-11-21 02:41:30 UTC"


def test_its_end_says_how_it_ended_and_what_it_was_for():
    force()
    overrides.remove_override(
        caller="core", callee="oracle", reason="the provider is sound again", actor=KIM, now=NOW
    )

    _, title, lines, _ = read("override.ended")

    assert title == "core → oracle is no longer overridden (forced open: removed)"
    assert lines["Ended by"] == "system:kim"
    assert lines["Why"] == "the provider is sound again"
    assert lines["Reason for the override"] == "the provider answers nonsense, INC-77"


def test_an_outage_says_what_was_seen_and_what_is_done():
    dependency(
        on_outage={"action": "trip", "switch": "segment:oracle", "for_seconds": 2},
        owner="search team",
    )
    for seconds in (0, 2):
        reports("core/a1", "open", at=NOW + seconds * SECOND)
        watch_outages(NOW + seconds * SECOND)

    _, title, lines, _ = read("outage.acted")

    assert title == "Outage of core → oracle: requested to engage segment:oracle"
    assert lines["Observed"] == (
        "The breaker of core → oracle is open in the only reporting instance;"
        " this began more than 2 s ago."
    )
    assert lines["Policy"] == "trip at 50% open"
