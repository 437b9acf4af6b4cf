"""Degradation causes of a relay that has no working connection to its upstream. Pure."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from controlplane.core.degradation_levels import EMERGENCY, Cause
from controlplane.core.environment_variables import WrongVariable

from .bundle import InvalidBundle
from .confirmations import InvalidConfirmation
from .upstream import TokenRefused, UpstreamFailed

_FAILS = ("Changes made elsewhere, of switches, tokens, policies and overrides",)
_WORKS = (
    "Engaging with an emergency code, on the page /emergency/",
    "Snapshots, streams and checks from the last copy",
    "Policies and overrides, as last received",
)


def make_cause(text: str) -> Cause:
    """Return the degradation of a relay that gets nothing new from its upstream."""
    return Cause(EMERGENCY, "upstream", text, fails=_FAILS, works=_WORKS)


def make_unreachable_cause(urls: Sequence[str], reason: str) -> Cause:
    names = _name_hosts(urls)
    what = f"The upstream {names} can't" if len(urls) == 1 else f"None of the upstreams {names} can"
    return make_cause(f"{what} be reached: {reason}. Switches stay as last received.")


def make_token_refused_cause(url: str) -> Cause:
    return make_cause(
        f"The upstream {_name_hosts([url])} refuses this relay's token: switches stay as last"
        " received. Set SWITCHGEAR_TOKEN to a valid token with the scope relay."
    )


def make_bundle_refused_cause(url: str, reason: str) -> Cause:
    return make_cause(
        f"This relay refuses what the upstream {_name_hosts([url])} sends: {reason}. Switches stay"
        " as last received."
    )


def explain_failure(error: Exception, urls: Sequence[str], url: str) -> tuple[str | None, Cause]:
    """Return the log event for a failure of the upstream `url`, None if unexpected; and the cause.

    `urls` are all upstreams of the relay.
    """
    reason = str(error)
    if isinstance(error, InvalidBundle):
        return "relay.bundle_refused", make_bundle_refused_cause(url, reason)
    if isinstance(error, TokenRefused):
        return "relay.token_refused", make_token_refused_cause(url)
    if isinstance(error, UpstreamFailed | InvalidConfirmation | WrongVariable):
        return "relay.upstream_lost", make_unreachable_cause(urls, reason)
    return None, make_unreachable_cause(urls, reason)


def _name_hosts(urls: Sequence[str]) -> str:
    return ", ".join(urlsplit(url).netloc for url in urls)
