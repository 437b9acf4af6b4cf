"""Settings of a webhook: its URL and signing secret, stored in columns of their own."""

import base64
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from controlplane.core.egress_guard import guard, name_resolution
from controlplane.core.egress_guard.allowed_networks import WEBHOOKS
from controlplane.core.errors import InvalidInput
from controlplane.notify.models.targets import SECRET_PREFIX, Target
from controlplane.notify.transports.channel_settings import (
    MAX_VALUE_LENGTH,
    ChannelSettings,
    SettingSpec,
    read_text,
)

MAX_HOST_LENGTH = 253

_HOST_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def masked_url(url: str) -> str:
    """Return a URL without its path, which may be secret, as in `https://hooks.example.org/…`."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}/…"


URL = SettingSpec(
    name="webhook_url",
    label="URL of the webhook",
    noun="a URL",
    help_text="Unchanged if left out in a PUT.",
    placeholder="https://…",
    is_secret=True,
    is_url=True,
    mask=masked_url,
)
NEW_SECRET = SettingSpec(
    name="new_secret",
    label="Sign with a new secret; the current one ends immediately",
    noun="a secret",
    help_text="Generate a new signing secret, effective immediately.",
    is_flag=True,
)


class WebhookSettings(ChannelSettings):
    """Settings of a webhook: a URL, checked by the egress guard, and a generated signing secret."""

    shown_once = "webhook_secret"
    shown_once_help = "The receiver checks signatures with it."

    def __init__(self) -> None:
        super().__init__(URL, NEW_SECRET)

    def values(self, target: Target) -> dict[str, str]:
        return {URL.name: target.webhook_url}

    def summary(self, target: Target) -> str:
        return masked_url(target.webhook_url)

    def is_complete(self, target: Target) -> bool:
        return bool(target.webhook_url)

    def look_up(self, given: Mapping[str, Any]) -> None:
        """Resolve the URL's host; raise :class:`InvalidInput` if it may not be called."""
        url = read_text(URL, given)
        if 0 < len(url) <= MAX_VALUE_LENGTH and (
            mistake := _find_mistake(url, name_resolution.resolve)
        ):
            raise InvalidInput({URL.name: [mistake]})

    def check(self, given: Mapping[str, Any], present: Target | None) -> dict[str, list[str]]:
        url = read_text(URL, given)
        if not url and present is not None and present.webhook_url and given.get(URL.name) is None:
            return {}
        if not url:
            mistake = "Address of the receiver, https://."
        elif len(url) > MAX_VALUE_LENGTH:
            mistake = f"At most {MAX_VALUE_LENGTH} characters."
        else:
            mistake = _find_mistake(url, _look_up_nothing)
        return {URL.name: [mistake]} if mistake else {}

    def write(self, target: Target, given: Mapping[str, Any]) -> str | None:
        if url := read_text(URL, given):
            target.webhook_url = url
        if target.webhook_secret and not given.get(NEW_SECRET.name):
            if target.webhook_secret.startswith(SECRET_PREFIX):
                target.sign_with(target.webhook_secret)
            return None
        secret = f"{SECRET_PREFIX}{base64.b64encode(secrets.token_bytes(32)).decode()}"
        target.sign_with(secret)
        return secret

    def write_visible(self, target: Target, given: Mapping[str, Any]) -> None:
        """Change nothing: all settings of a webhook are secret."""

    def clear(self, target: Target) -> None:
        target.webhook_url = target.webhook_secret = ""


def _find_mistake(url: str, resolver: name_resolution.Resolve) -> str:
    try:
        guard.check_url(url, WEBHOOKS, resolver=resolver)
    except ValueError as error:
        return str(error)
    return "" if is_host(httpx.URL(url).raw_host.decode()) else "Not a valid host name."


def _look_up_nothing(host: str, port: int) -> list[str]:
    raise OSError(f"{host} is not resolved on this server")


def is_host(host: str) -> bool:
    """Return True if a URL's host is an IPv6 address, an IPv4 address or a valid DNS name."""
    if ":" in host:
        return True
    name = host.removesuffix(".").lower()
    return len(name) <= MAX_HOST_LENGTH and all(map(_HOST_LABEL.fullmatch, name.split(".")))
