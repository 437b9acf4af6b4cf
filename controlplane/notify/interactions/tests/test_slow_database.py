"""A slow database: Slack is answered within its 3 seconds, and nothing is committed later."""

import time

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.http.tests.callers import person, signed_in
from controlplane.core.http.tests.sessions import another_session, terminated_at
from controlplane.notify.interactions import payloads, services, views
from controlplane.notify.models.interactions import AnsweredRequest

from .slack_requests import send, signed

pytestmark = pytest.mark.django_db(transaction=True)

SLACK_WAITS_SECONDS = 3
RELEASE = {"justification": "duplicate charges refunded, queue empty", "mode": "immediate"}
LOCKS = {
    "publication": "SELECT * FROM switches_publication FOR UPDATE",
    "approval": "SELECT * FROM core_approval FOR UPDATE",
    "audit": f"SELECT pg_advisory_xact_lock({audit.CHAIN_LOCK})",
}


@pytest.fixture
def waiting():
    kim = signed_in(person("operator", "kim"))
    kim.engage("global:all")
    return kim.post("/switches/global/all/release", RELEASE).json()["approval"]["id"]


def wait_until(holds):
    ends = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.02)


@pytest.fixture
def hurried(monkeypatch):
    """Shorten the time limits to a fifth."""
    assert views.WORK_SECONDS < views.ANSWER_SECONDS < SLACK_WAITS_SECONDS - 0.5
    for name in ("WORK_SECONDS", "ANSWER_SECONDS"):
        monkeypatch.setattr(views, name, getattr(views, name) / 5)


@pytest.mark.parametrize("lock", LOCKS)
def test_slack_is_answered_in_time_and_the_presser_is_told(in_slack, slack, waiting, lock, hurried):
    lee = in_slack("approver", "lee")
    body = lee.body("approve", {"approval": waiting})

    with another_session() as other:
        other.execute(LOCKS[lock])
        began = time.monotonic()
        response = send(body, signed(body))
        took = time.monotonic() - began
        wait_until(lambda: slack.requests)

    assert response.status_code == 200
    assert took < views.ANSWER_SECONDS + 0.5
    (request,) = slack.requests
    assert request["path"] == f"/actions/T1/42/{lee.id}"
    assert request["json"]["response_type"] == "ephemeral"
    assert request["json"]["text"] == services.NOT_NOW
    time.sleep(0.5)
    assert Approval.objects.get().state == "pending"
    assert not AnsweredRequest.objects.exists()


def test_pressed_again_afterwards_it_works(in_slack, slack, waiting, hurried):
    lee = in_slack("approver", "lee")
    body = lee.body("approve", {"approval": waiting})
    headers = signed(body)
    with another_session() as other:
        other.execute(LOCKS["publication"])
        send(body, headers)

    assert lee.press("approve", {"approval": waiting}).startswith("You approved")
    assert Approval.objects.get().state == "approved"


def test_press_whose_session_was_terminated_is_carried_out_once(in_slack, waiting):
    lee = in_slack("approver", "lee")
    pressed = payloads.parse_payload(lee.body("approve", {"approval": waiting}))

    with terminated_at("core_approval.*FOR UPDATE", 1) as ended:
        services.handle_press(pressed, "digest", ends=time.monotonic() + 5)

    assert len(ended) == 1
    assert Approval.objects.get().decided_by == "slack:lee"
    assert AnsweredRequest.objects.count() == 1
