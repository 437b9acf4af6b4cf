"""Fixtures: a fake Slack configured by bot token or by webhook."""

from dataclasses import replace

import pytest

from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.transports import destinations, outbound
from controlplane.notify.transports.base import TRANSPORTS, Transport

from .fake_slack import fake_slack
from .outbox_helpers import nobody_sends, wait_until

TOKEN = "xoxb-1234-secret"


@pytest.fixture
def slack():
    with fake_slack() as fake:
        yield fake


@pytest.fixture
def by_bot(slack, settings):
    settings.SLACK = replace(
        settings.SLACK,
        bot_token=TOKEN,
        channel="C0000OPS",
        webhook_url="",
        api_url=f"{slack.url}/api",
    )
    return slack


@pytest.fixture
def by_webhook(slack, settings):
    settings.SLACK = replace(
        settings.SLACK, bot_token="", webhook_url=f"{slack.url}/services/T0/B0/secretpath"
    )
    return slack


@pytest.fixture(autouse=True)
def _nothing_configured_by_the_shell(settings):
    settings.SLACK = replace(settings.SLACK, bot_token="", webhook_url="", signing_secret="")


@pytest.fixture
def ended():
    """Stop all senders at the end of a test."""
    yield
    wait_until(nobody_sends, 15)


@pytest.fixture
def registered():
    """Register transports by key, as objects with `reaches` and `send`, for one test."""
    keys = []

    def register(key, sender):
        TRANSPORTS.register(
            Transport(
                key=key,
                label=key,
                position=99,
                reaches=sender.reaches,
                send=sender.send,
                secrets=sender.secrets,
            )
        )
        keys.append(key)

    yield register
    for key in keys:
        TRANSPORTS.unregister(key)


@pytest.fixture
def no_pace(monkeypatch):
    monkeypatch.setattr(destinations, "limit_for", lambda _: RateLimit(1000, 1000))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(outbound, "READ_SECONDS", 0.3)
    monkeypatch.setattr(outbound, "WHOLE_SECONDS", 0.8)
