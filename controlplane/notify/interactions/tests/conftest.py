"""Fixtures: Slack with a signing secret, and users who press buttons."""

from dataclasses import replace

import pytest

from controlplane.core.http.tests.callers import person
from controlplane.notify.delivery.tests.fake_slack import fake_slack

from .slack_requests import SECRET, SlackUser


@pytest.fixture
def slack():
    with fake_slack() as fake:
        yield fake


@pytest.fixture(autouse=True)
def _clicks_are_verified(slack, settings):
    settings.SLACK = replace(
        settings.SLACK,
        bot_token="xoxb-1234-secret",
        channel="#ops",
        webhook_url="",
        signing_secret=SECRET,
        api_url=f"{slack.url}/api",
    )


@pytest.fixture
def in_slack(slack):
    """Return a factory: `in_slack("approver", "lee")` is a user with that role, linked to Slack."""

    def connect(role, username=None):
        user = person(role, username)
        user.slack_user_id = f"U{user.username.upper().replace('-', '')}"
        user.save(update_fields=["slack_user_id"])
        return SlackUser(user.slack_user_id, slack.url)

    return connect
