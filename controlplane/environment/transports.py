"""How messages leave: Slack and e-mail."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from controlplane.environment.values import WrongVariable, checked_url


@dataclass(frozen=True)
class Slack:
    """The Slack transport: a bot token with a channel, or an incoming webhook, or neither."""

    bot_token: str
    channel: str
    webhook_url: str
    signing_secret: str
    api_url: str


@dataclass(frozen=True)
class Email:
    """The mail server; `host` is empty if there is none. `sender` is who messages come from."""

    host: str
    port: int
    user: str
    password: str
    security: str  # "", "starttls" or "tls"
    sender: str


def slack(variables: Mapping[str, str]) -> Slack:
    token, channel = variables.get("SLACK_BOT_TOKEN", ""), variables.get("SLACK_CHANNEL", "")
    webhook = variables.get("SLACK_WEBHOOK_URL", "")
    if token and not channel:
        raise WrongVariable(
            "SLACK_CHANNEL", "SLACK_BOT_TOKEN is set, so name the channel to post to"
        )
    if webhook:
        checked_url(webhook, "SLACK_WEBHOOK_URL", {"http", "https"})
    return Slack(
        bot_token=token,
        channel=channel,
        webhook_url=webhook,
        signing_secret=variables.get("SLACK_SIGNING_SECRET", ""),
        api_url=checked_url(
            variables.get("SLACK_API_URL") or "https://slack.com/api",
            "SLACK_API_URL",
            {"http", "https"},
        ),
    )


def email(variables: Mapping[str, str]) -> Email:
    """`smtp://user:password@host:587?from=switchgear@example.org`; `smtps://` for TLS at once.

    Plain `smtp://` upgrades by STARTTLS unless the host is this machine or `?tls=off` says not to.
    """
    given = variables.get("EMAIL_URL", "")
    if not given:
        return Email("", 0, "", "", "", "")
    parts = urlsplit(checked_url(given, "EMAIL_URL", {"smtp", "smtps"}))
    host, options = parts.hostname or "", dict(parse_qsl(parts.query))
    if not host:
        raise WrongVariable("EMAIL_URL", "names no host")
    sender = options.get("from", f"switchgear@{host}")
    if not (sender.isprintable() and "@" in sender):
        raise WrongVariable("EMAIL_URL", "from= is not an e-mail address")
    plain = host in {"localhost", "127.0.0.1", "::1"} or options.get("tls") == "off"
    security = "tls" if parts.scheme == "smtps" else "" if plain else "starttls"
    usual = {"tls": 465, "starttls": 587, "": 25}[security]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Email(host, parts.port or usual, user, password, security, sender)
