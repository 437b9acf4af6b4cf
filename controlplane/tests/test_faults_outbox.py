"""Slack hung, and senders killed in the middle of a send: no toggle waits, no message is lost."""

import os
import signal
import time

import psycopg
import pytest

from controlplane.core.outbox.tests.fake_slack import fake_slack
from controlplane.tests.installation import running, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"


@pytest.fixture
def slack():
    with fake_slack() as fake:
        yield fake


@pytest.fixture
def installation(tmp_path, slack):
    bot = {"SLACK_BOT_TOKEN": "xoxb-1234-secret", "SLACK_CHANNEL": "#ops"}
    with running(tmp_path / "var", SLACK_API_URL=f"{slack.url}/api", **bot) as one:
        yield one


@pytest.fixture
def client(installation):
    with installation.client(installation.token("switches:write", "switches:read")) as one:
        yield one


def engage(client, key):
    body = {"reason": REASON, "expires_in": "24h"}
    assert client.post(f"/api/v1/switches/segment/{key}/engage", json=body).status_code == 200


def outbox(installation):
    """(state, attempts) of every message."""
    with psycopg.connect(installation.services()["database_owner_url"]) as database:
        query = "SELECT state, attempts FROM core_outboxmessage ORDER BY id"
        return database.execute(query).fetchall()


@pytest.mark.smoke
def test_slack_that_hangs_delays_no_toggle(installation, client, slack):
    slack.always = "hang"
    engage(client, "first")
    until(lambda: slack.requests, 10, installation.said)

    seconds = []
    for number in range(30):
        started = time.monotonic()
        engage(client, f"s{number}")
        seconds.append(time.monotonic() - started)

    seconds.sort()
    print(f"engage while Slack hangs: median {seconds[15]:.3f} s, slowest {seconds[-1]:.3f} s")
    assert seconds[-1] < 0.2
    slack.always = "ok"
    everything_sent = lambda: {state for state, _ in outbox(installation)} == {"sent"}  # noqa: E731
    until(everything_sent, 90, lambda: outbox(installation))


def test_a_message_goes_out_at_once_and_not_at_the_next_tick(installation, client, slack):
    seconds = []
    for number in range(20):
        started = time.monotonic()
        engage(client, f"s{number}")
        until(lambda count=number + 1: len(slack.requests) == count, 5, installation.said)
        seconds.append(time.monotonic() - started)

    seconds.sort()
    print(f"engage to Slack: median {seconds[10]:.3f} s, slowest {seconds[-1]:.3f} s")
    assert seconds[10] < 0.4


def test_killed_in_the_middle_of_a_send_the_message_is_sent_again(installation, client, slack):
    slack.script = ["hang"]
    engage(client, "finance")
    until(lambda: slack.requests, 10, installation.said)

    for words in (("celery", "worker"), ("watchdog",)):
        os.kill(installation.pid_of(*words), signal.SIGKILL)

    until(lambda: outbox(installation) == [("sent", 2)], 50, lambda: outbox(installation))
    assert len(slack.requests) == 2


def test_redis_gone_messages_still_go_out_once(installation, client, slack):
    with installation.suspended("redis-server"):
        engage(client, "finance")
        engage(client, "chat")

        until(lambda: len(slack.requests) == 2, 20, installation.said)

    time.sleep(3)
    assert len(slack.requests) == 2
    assert outbox(installation) == [("sent", 1), ("sent", 1)]
