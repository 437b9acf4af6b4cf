"""Settings of dead letters: Redis servers, stream names, retention and redaction."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.core import environment_variables as env

SERVER_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")
HIDDEN_KEYS = (
    "*password*,*passwd*,*pwd*,*passphrase*,pass,*secret*,*token*,*api_key*,*apikey*,*api-key*,"
    "*authorization*,*cookie*,*credential*,*private_key*,*privatekey*,*private-key*,*session*,"
    "*ssn*,*card_number*,*cardnumber*,*cvv*,*cvc*,*iban*,pin"
)


@dataclass(frozen=True)
class DeadLetters:
    """Settings of dead letters.

    `servers` are Redis URLs by name. `patterns` are pairs of stream names that contain `{stream}`:
    the dead letter stream, and the stream its messages come from. `hidden_keys` are globs of
    payload keys to redact.
    """

    servers: Mapping[str, str]
    patterns: tuple[tuple[str, str], ...]
    kept_days: int
    most_kept: int
    hidden_keys: tuple[str, ...]


def read_dead_letters(variables: Mapping[str, str], redis_url: str) -> DeadLetters:
    """Read the `DLQ_` variables; the server `default` is `redis_url` unless `DLQ_SERVERS` has it.

    `DLQ_SERVERS` has entries `name=URL`, and `DLQ_PATTERNS` entries such as
    `axiom:dlq:{stream}=axiom:{stream}`, separated by spaces.
    """
    servers = {"default": redis_url}
    for text in variables.get("DLQ_SERVERS", "").split():
        name, is_named, url = text.partition("=")
        if not (is_named and SERVER_NAME.fullmatch(name)):
            raise env.WrongVariable("DLQ_SERVERS", "must be name=URL, separated by spaces")
        servers[name] = env.check_url(url, "DLQ_SERVERS", env.REDIS_SCHEMES | {"redis+cluster"})
    patterns = variables.get("DLQ_PATTERNS") or "axiom:dlq:{stream}=axiom:{stream}"
    hidden = variables.get("DLQ_HIDDEN_KEYS") or HIDDEN_KEYS
    return DeadLetters(
        servers=servers,
        patterns=tuple(_parse_pattern(text) for text in patterns.split()),
        kept_days=env.read_number(variables, "DLQ_KEPT_DAYS", default=30, low=1, high=3650),
        most_kept=env.read_number(variables, "DLQ_MOST_KEPT", default=5000, low=1, high=10_000_000),
        hidden_keys=tuple(key.strip().lower() for key in hidden.split(",") if key.strip()),
    )


def _parse_pattern(text: str) -> tuple[str, str]:
    dead, is_pair, origin = text.partition("=")
    place = "{stream}"
    if not is_pair or dead.count(place) != 1 or origin.count(place) != 1 or dead == origin:
        raise env.WrongVariable(
            "DLQ_PATTERNS",
            "must be like axiom:dlq:{stream}=axiom:{stream}, separated by spaces",
        )
    return dead, origin
