"""A change is retried once if its database session is terminated before the commit."""

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.ended_sessions import SessionEnded
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import at_once, browser_of, person, signed_in
from controlplane.core.http.tests.sessions import terminated_at, terminated_at_commit
from switches import services
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import CHAT, SHELL, engage, get_share, get_state, start_ramp

pytestmark = pytest.mark.django_db(transaction=True)
LOCKS = r"switches_publication.*FOR UPDATE"
FINANCE = {"scope": "segment", "key": "finance", "actor": SHELL}
THREE = [{"percent": percent, "dwell_seconds": 10} for percent in (5, 25, 100)]
REASON = "duplicate charges refunded, queue empty"


def changes(action: str) -> int:
    return AuditEntry.objects.filter(action=action).count()


def advance(ramp):
    """Advance the ramp in another thread, over another session."""
    at_once(lambda: actions.advance(ramp_id=ramp.pk, reason=REASON, actor=SHELL, now=db_now()))


@pytest.mark.parametrize(
    ("action", "change"),
    [
        (
            "switch.extended",
            lambda: services.extend(**FINANCE, expires_in="7d", reason=REASON, now=db_now()),
        ),
        ("episode.acknowledged", lambda: services.acknowledge(**FINANCE, now=db_now())),
        ("switch.undone", lambda: services.undo(**FINANCE, now=db_now())),
        (
            "ramp.started",
            lambda: services.release(**FINANCE, justification=REASON, now=db_now()),
        ),
    ],
)
def test_change_is_made_once_more(action, change):
    engage("segment:finance", db_now())

    with terminated_at(LOCKS, 1) as ended:
        change()

    assert len(ended) == 1
    assert changes(action) == 1


def test_press_on_a_ramp_is_made_once_more():
    ramp = start_ramp(db_now())

    with terminated_at(LOCKS, 1) as ended:
        actions.abort(ramp_id=ramp.pk, reason=REASON, actor=SHELL, now=db_now())

    assert len(ended) == 1
    assert (get_state(CHAT), changes("ramp.aborted")) == ("engaged", 1)


def test_advance_that_is_made_once_more_leaves_the_step_it_was_asked_at():
    ramp = start_ramp(db_now(), THREE)

    with (
        terminated_at(LOCKS, 1, meanwhile=lambda: advance(ramp)) as ended,
        pytest.raises(Conflict, match="advanced it to step 2 of 3"),
    ):
        actions.advance(ramp_id=ramp.pk, reason=REASON, actor=SHELL, now=db_now())

    assert len(ended) == 1
    assert (get_share(), changes("ramp.advanced")) == (25, 1)


def test_advance_over_the_api_that_is_made_once_more_leaves_the_step_it_was_asked_at():
    ramp, kim = start_ramp(db_now(), THREE), signed_in(person("approver", "kim"))

    with terminated_at(LOCKS, 1, meanwhile=lambda: advance(ramp)) as ended:
        response = kim.post(f"/ramps/{ramp.pk}/advance", {"reason": REASON})

    assert len(ended) == 1
    assert (response.status_code, response.json()["step_index"]) == (409, 1)
    assert (get_share(), changes("ramp.advanced")) == (25, 1)


def test_engage_on_a_page_and_over_the_api_is_made_once_more():
    kim = person("operator", "kim")
    form = {"scope": "segment", "key": "page", "reason": REASON, "how_long": "24h"}

    with terminated_at(LOCKS, 1) as by_page:
        response = browser_of(kim).post("/switches/engage/", form)
    with terminated_at(LOCKS, 1) as by_api:
        signed_in(kim).engage("segment:api")

    assert response.status_code == 302, response.content
    assert (len(by_page), len(by_api)) == (1, 1)
    assert (get_state("segment:page"), get_state("segment:api")) == ("engaged", "engaged")


def test_change_whose_session_ends_before_its_commit_is_made_once_more():
    kim = signed_in(person("operator", "kim"))

    with terminated_at_commit() as ended:
        response = kim.engage("segment:finance")

    assert len(ended) == 1
    assert response.status_code == 200, response.content
    assert changes("switch.engaged") == 1


def test_change_whose_session_ends_after_its_commit_is_not_repeated():
    kim = signed_in(person("operator", "kim"))

    with terminated_at_commit(is_after=True) as ended:
        response = kim.engage("segment:finance", headers={"Idempotency-Key": "once"})

    assert len(ended) == 1
    assert response.status_code == 200, response.content
    assert changes("switch.engaged") == 1


def test_second_termination_before_the_commit_is_told_and_changes_nothing():
    kim = signed_in(person("operator", "kim"))

    with terminated_at_commit(2) as ended:
        response = kim.engage("segment:finance", headers={"Idempotency-Key": "once"})

    assert len(ended) == 2
    assert response.status_code == 503
    assert "Nothing changed; try again." in response.json()["detail"]
    assert changes("switch.engaged") == 0


def test_second_termination_is_told_and_changes_nothing():
    with terminated_at(LOCKS, 2) as ended, pytest.raises(SessionEnded):
        engage("segment:finance", db_now(), by=system_actor("shell:kim"))

    assert len(ended) == 2
    assert changes("switch.engaged") == 0


def test_page_says_to_try_again_after_a_second_termination():
    form = {"scope": "segment", "key": "page", "reason": REASON, "how_long": "24h"}
    browser = browser_of(person("operator", "kim"))

    with terminated_at(LOCKS, 2):
        response = browser.post("/switches/engage/", form)

    assert response.status_code == 503
    assert "Nothing changed; try again." in response.content.decode()
    assert changes("switch.engaged") == 0
