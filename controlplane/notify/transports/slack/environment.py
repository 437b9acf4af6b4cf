"""The environment variables of the Slack transport."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.core.environment_variables import WrongVariable, check_url

VARIABLES = (
    "SLACK_BOT_TOKEN",
    "SLACK_CHANNEL",
    "SLACK_WEBHOOK_URL",
    "SLACK_SIGNING_SECRET",
    "SLACK_API_URL",
)


@dataclass(frozen=True)
class SlackSettings:
    """Settings of Slack: a bot token with a channel, or an incoming webhook, or neither."""

    bot_token: str
    channel: str
    webhook_url: str
    signing_secret: str
    api_url: str


def read(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the Django setting `SLACK`; raise :class:`WrongVariable` if a variable is invalid."""
    token, channel = variables.get("SLACK_BOT_TOKEN", ""), variables.get("SLACK_CHANNEL", "")
    webhook = variables.get("SLACK_WEBHOOK_URL", "")
    if token and not channel:
        raise WrongVariable(
            "SLACK_CHANNEL", "SLACK_BOT_TOKEN is set, so name the channel to post to"
        )
    if webhook:
        check_url(webhook, "SLACK_WEBHOOK_URL", {"http", "https"})
    api_url = variables.get("SLACK_API_URL") or "https://slack.com/api"
    slack = SlackSettings(
        bot_token=token,
        channel=channel,
        webhook_url=webhook,
        signing_secret=variables.get("SLACK_SIGNING_SECRET", ""),
        api_url=check_url(api_url, "SLACK_API_URL", {"http", "https"}),
    )
    return {"SLACK": slack}
