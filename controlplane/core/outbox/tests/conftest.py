"""A fake Slack that the settings point to, by bot token or by webhook."""

from dataclasses import replace

import pytest

from controlplane.core.outbox.tests.fake_slack import fake_slack

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
        channel="#ops",
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
