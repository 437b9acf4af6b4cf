"""Retention of old rows, and the display names of people and shells."""

import getpass
import os
from datetime import timedelta

import pytest

from controlplane.accounts.people import services as people
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.retention_rules import MESSAGES
from controlplane.core.shell import shell_actor
from controlplane.notify.tasks import purge_outbox

pytestmark = pytest.mark.django_db


def message(key, state, finished_at):
    OutboxMessage.objects.create(
        event="switch.engaged",
        event_key=key,
        destination="slack",
        payload={},
        state=state,
        next_attempt_at=finished_at,
        created_at=finished_at,
        finished_at=finished_at,
    )


def test_only_what_was_sent_long_ago_leaves_the_outbox():
    now = db_now()
    long_ago = now - MESSAGES.period - timedelta(seconds=1)
    message("old", "sent", long_ago)
    message("old-failed", "failed", long_ago)
    message("new", "sent", now)

    assert purge_outbox(now) == 1

    assert set(OutboxMessage.objects.values_list("event_key", flat=True)) == {"old-failed", "new"}


def test_a_name_typed_decomposed_is_kept_as_signing_in_will_look_for_it():
    user = people.create_user(
        username="\u1100\u1175\u11b7",
        password=None,
        role="viewer",
        actor=system_actor("t"),
        now=db_now(),
    )

    assert user.username == "김"


def test_a_shell_whose_user_no_file_knows_is_named_by_number(monkeypatch):
    def unknown():
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)

    assert shell_actor().name == f"shell:uid-{os.getuid()}"
