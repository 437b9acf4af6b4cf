"""After any fault of Slack, the message is in the channel exactly once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import Attempt, OutboxMessage, Thread
from controlplane.notify.delivery import claims
from controlplane.notify.transports.slack import history

from .outbox_helpers import (
    announce,
    attempted,
    deliver,
    message,
    nobody_sends,
    states,
    sweep,
    wait_until,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("no_pace", "impatient", "ended"),
]

REFUSED = ["429 1", "429", "429 Fri, 31 Dec 2100 23:59:59 GMT", "ok:false ratelimited",
           "ok:false a_code_of_tomorrow", "408"]  # fmt: skip
DOUBTFUL = ["500", "503", "hang", "drip", "reset", "text 200 {}", "text 200 surprise",
            "ok:false internal_error", "ok:false fatal_error"]  # fmt: skip


@pytest.mark.parametrize("step", [*REFUSED, *DOUBTFUL, *(f"accepted {one}" for one in DOUBTFUL)])
@pytest.mark.parametrize("subject", ["", "episode:1"])
def test_one_message_whatever_happens_to_the_first_request(by_bot, step, subject):
    by_bot.script = [step]
    announce(subject=subject)

    deliver()

    assert states() == ["sent"]
    assert len(by_bot.messages) == 1
    if subject:
        assert Thread.objects.get().ts == by_bot.messages[0]["ts"]


@pytest.mark.parametrize(
    "step", ["429 1", "500", "reset", "accepted 500", "accepted hang", "accepted reset"]
)
@pytest.mark.parametrize("method", ["chat.update", "chat.postMessage"])
def test_one_reply_whatever_happens_to_one_of_its_two_calls(by_bot, step, method):
    announce(subject="episode:1")
    deliver()
    by_bot.on = {method: [step]}
    announce(first=2, event="switch.released", subject="episode:1")

    deliver()

    head, reply = by_bot.messages
    assert reply["thread_ts"] == head["ts"]
    assert "released" in head["text"]
    assert states() == ["sent", "sent"]


@pytest.mark.django_db(transaction=True)
def test_three_doubts_in_a_row_and_still_one_message(by_bot):
    by_bot.script = ["500", "reset", "accepted hang", "500"]
    announce()

    deliver()

    assert len(by_bot.messages) == 1
    outcomes = Attempt.objects.order_by("number").values_list("number", "outcome")
    assert list(outcomes) == [(1, "unknown"), (2, "unknown"), (3, "unknown"), (4, "sent")]


def test_a_failing_search_is_not_taken_for_an_empty_channel(by_bot):
    by_bot.script = ["accepted 500"]
    by_bot.on = {"conversations.history": ["500", "429 1", "hang", "reset"]}
    announce()

    deliver()

    assert len(by_bot.messages) == 1
    assert states() == ["sent"]
    assert by_bot.methods.count("conversations.history") == 5


def test_found_on_a_later_page_of_the_channel(by_bot, monkeypatch):
    monkeypatch.setattr(history, "A_PAGE", 3)
    by_bot.script = ["accepted 500"]
    announce()
    sweep()
    wait_until(nobody_sends)
    for number in range(7):
        by_bot.perform("chat.postMessage", {"channel": "C0000OPS", "text": f"chatter {number}"})

    deliver()

    assert len(by_bot.messages) == 8
    assert len(by_bot.posts) == 1


def test_an_attempt_is_looked_for_only_after_a_moment(by_bot):
    by_bot.script = ["500"]
    announce()
    before = db_now()

    sweep()

    waits = attempted().next_attempt_at - before
    assert waits >= timedelta(seconds=claims.LOOK_AFTER_SECONDS)


@pytest.mark.parametrize("code", ["missing_scope", "not_in_channel", "a_code_of_tomorrow"])
def test_where_history_can_not_be_read_it_is_sent_again_and_says_so(by_bot, code):
    by_bot.script = ["500"]
    by_bot.on = {"conversations.history": [f"ok:false {code}"]}
    announce()

    deliver()

    (post,) = by_bot.messages
    assert "possible duplicate" in post["text"]
    last = Attempt.objects.get(number=2)
    assert (last.outcome, "possible duplicate" in last.error) == ("sent", True)
    assert wordless(message())


def test_a_channel_known_by_name_only_can_not_be_searched(by_bot, settings):
    settings.SLACK = replace(settings.SLACK, channel="#ops")
    by_bot.script = ["500"]
    announce()

    deliver()

    assert by_bot.methods == ["chat.postMessage", "conversations.history", "chat.postMessage"]
    assert "possible duplicate" in by_bot.texts[1]


def test_a_channel_known_by_name_is_searched_by_the_id_that_a_thread_told(by_bot, settings):
    settings.SLACK = replace(settings.SLACK, channel="#ops")
    by_bot.ids = {"#ops": "C0000OPS"}
    announce(subject="episode:1")
    deliver()
    assert Thread.objects.get().channel == "C0000OPS"
    by_bot.script = ["accepted 500"]

    announce(first=2)
    deliver()

    assert states() == ["sent", "sent"]
    assert len(by_bot.posts) == len(by_bot.messages) == 2
    searched = [one for one in by_bot.requests if one["method"] == "conversations.history"]
    assert [one["json"]["channel"] for one in searched] == ["C0000OPS"]


def test_a_person_is_reached_and_searched_too(by_bot):
    by_bot.script = ["accepted reset"]
    announce(to=["slack:U0000ALICE"])

    deliver()

    assert [post["channel"] for post in by_bot.messages] == ["D0000ALICE"]


def test_a_webhook_can_not_be_asked_so_a_doubtful_message_is_repeated(by_webhook):
    by_webhook.script = ["accepted 500"]
    announce()

    deliver()

    first, second = by_webhook.messages
    assert "possible duplicate" not in first["text"]
    assert "possible duplicate" in second["text"]
    assert by_webhook.methods == ["webhook", "webhook"]


def test_a_message_of_another_installation_is_not_taken_for_ours(by_bot, settings):
    by_bot.script = ["accepted 500"]
    announce()
    sweep()
    wait_until(nobody_sends)
    settings.ENVIRONMENT_NAME = "another"

    deliver()

    assert len(by_bot.messages) == 2


def test_a_sender_that_died_before_its_first_call_leaves_a_begun_attempt(by_bot):
    announce()
    claims.claim_message("slack")  # And then its process is gone.
    OutboxMessage.objects.update(lease_until=db_now())

    deliver()

    outcomes = Attempt.objects.order_by("number").values_list("outcome", flat=True)
    assert list(outcomes) == ["started", "sent"]
    assert by_bot.methods == ["conversations.history", "chat.postMessage"]


def wordless(row):
    """Return whether the stored payload has no repeat mark."""
    return "may_be_repeat" not in row.payload
