"""Retrying failed messages: permission, state and audit."""

import pytest

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, NotFound
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.delivery import failed_messages

from .outbox_helpers import announce, deliver, message, states

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("no_pace", "impatient", "ended"),
]


def retry(message_id, actor=None):
    return failed_messages.retry_message(
        message_id=message_id, actor=actor or system_actor("test"), now=db_now()
    )


def test_a_failed_message_has_all_its_attempts_again_and_its_numbers_go_on(by_bot):
    by_bot.always = "ok:false a_code_of_tomorrow"
    announce()
    deliver(9)
    assert (message().state, message().attempts) == ("failed", 8)

    retry(message().pk)
    deliver(9)

    assert (message().state, message().attempts) == ("failed", 8)
    numbers = Attempt.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 17))


def test_what_may_have_arrived_before_it_was_given_up_is_looked_for(by_bot, monkeypatch):
    by_bot.script = [*["500"] * 7, "accepted 500"]
    announce()
    deliver(9)
    assert states() == ["failed"]

    retry(message().pk)
    deliver()

    assert states() == ["sent"]
    assert len(by_bot.messages) == 1
    assert "earlier attempt was delivered" in Attempt.objects.get(number=9).error


def test_it_is_audited_with_what_was(by_bot):
    by_bot.script = ["ok:false invalid_auth"]
    announce()
    deliver()

    retry(message().pk)

    entry = AuditEntry.objects.get(action="outbox.retried")
    assert entry.target == f"outbox:{message().pk}"
    assert "invalid_auth" in entry.before
    OutboxMessage.objects.update(state="sent")


def test_only_what_failed_can_be_retried(by_bot):
    announce()

    with pytest.raises(Conflict, match="has not failed"):
        retry(message().pk)
    with pytest.raises(NotFound):
        retry(message().pk + 1)
    OutboxMessage.objects.update(state="sent")


def test_it_takes_the_scope_to_write_switches(by_bot):
    announce()
    OutboxMessage.objects.update(state="failed")

    with pytest.raises(Forbidden):
        retry(message().pk, Actor(type="user", name="reader", scopes=frozenset({"switches:read"})))

    assert states() == ["failed"]


def test_whoever_may_write_dead_letters_may_send_it_again_or_let_it_go(by_bot):
    announce()
    OutboxMessage.objects.update(state="failed")
    fixer = Actor(type="token", name="fixer", scopes=frozenset({"dlq:write"}))

    failed_messages.discard_message(
        message_id=message().pk, reason="nobody waits for it", actor=fixer, now=db_now()
    )
    by_whom = message().discarded_by
    retry(message().pk, fixer)

    assert by_whom == "token:fixer"
    assert states() == ["pending"]
