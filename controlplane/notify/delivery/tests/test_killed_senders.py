"""A sender process killed during a delivery: the message is in the channel exactly once."""

import os
import signal
import subprocess
import sys
from urllib.parse import quote, urlsplit, urlunsplit

import pytest
from django.conf import settings as django_settings
from django.db import connection

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.delivery import digests

from .conftest import TOKEN
from .outbox_helpers import announce, deliver, states, wait_until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.smoke,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_pace", "ended"),
]

SWEEP = """
import django; django.setup()
import time
from controlplane.core.clock import db_now
from controlplane.notify.delivery import sender
sender.start_sending(db_now())
time.sleep(60)
"""


@pytest.fixture
def sender(by_bot):
    """Start a process that sweeps the test's database; it is killed at the end of the test."""
    started = []

    def start():
        url = urlsplit(os.environ["DATABASE_OWNER_URL"])
        database = quote(connection.settings_dict["NAME"])
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "DATABASE_URL": urlunsplit(url._replace(path=f"/{database}")),
            "SLACK_BOT_TOKEN": TOKEN,
            "SLACK_CHANNEL": "C0000OPS",
            "SLACK_API_URL": f"{by_bot.url}/api",
        }
        command = [sys.executable, "-c", SWEEP]
        started.append(subprocess.Popen(command, cwd=django_settings.BASE_DIR, env=environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(10)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    # Its lease would end by itself in half a minute.
    OutboxMessage.objects.exclude(lease_until=None).exclude(
        lease_until__gt=db_now() + digests.MEMBER_LEASE / 2
    ).update(lease_until=db_now())


@pytest.mark.parametrize("step", ["hang", "accepted hang"])
@pytest.mark.parametrize("subject", ["", "episode:1"])
def test_killed_while_slack_has_the_request(by_bot, sender, step, subject):
    by_bot.script = [step]
    announce(subject=subject)
    process = sender()
    wait_until(lambda: by_bot.posts, 20)

    kill(process)
    deliver()

    assert len(by_bot.messages) == 1
    assert states() == ["sent"]
    outcomes = Attempt.objects.order_by("number").values_list("outcome", flat=True)
    assert list(outcomes) == ["started", "sent"]


@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("chat.update", "hang"),
        ("chat.update", "accepted hang"),
        ("chat.postMessage", "hang"),
        ("chat.postMessage", "accepted hang"),
    ],
)
def test_killed_anywhere_between_the_update_and_the_reply(by_bot, sender, method, step):
    announce(subject="episode:1")
    deliver()
    by_bot.on = {method: [step]}
    announce(first=2, event="switch.released", subject="episode:1")
    process = sender()
    wait_until(lambda: not by_bot.on[method], 20)

    kill(process)
    deliver()

    head, reply = by_bot.messages
    assert reply["thread_ts"] == head["ts"]
    assert "released" in head["text"]
    assert states() == ["sent", "sent"]


@pytest.mark.parametrize("step", ["hang", "accepted hang"])
def test_killed_with_a_digest(by_bot, sender, step):
    by_bot.script = [step]
    announce(15, event="episode.expires_soon")
    process = sender()
    wait_until(lambda: by_bot.posts, 20)

    kill(process)
    deliver()

    assert len(by_bot.messages) == 1
    assert set(states()) == {"sent"}
