"""Limits and header parsing shared by the console and the data plane; runs without Django."""

import re

from .console_urls import SCIM_ROOT
from .errors import TooLarge

MAX_BODY_BYTES = 64 * 1024
MAX_REPORT_BODY_BYTES = 512 * 1024  # an instance may have hundreds of breakers
MAX_HOOK_BODY_BYTES = 1024 * 1024  # a monitor sends whole groups of alerts, and never twice
MAX_LETTER_BODY_BYTES = 1024 * 1024  # an edited message
MAX_OPENSLO_BODY_BYTES = 1024 * 1024  # a file of all objectives
MAX_CONFIGURATION_BODY_BYTES = 4 * 1024 * 1024  # all files, with 20,000 switches
MAX_SLI_BODY_BYTES = 4 * 1024 * 1024  # ten thousand points
MAX_SCIM_BODY_BYTES = 4 * 1024 * 1024  # a group of 20,000 people
MAX_EXCHANGE_BODY_BYTES = 4 * 1024 * 1024  # a listing of all emergency orders, and a page of them
MAX_RELAY_BODY_BYTES = 4 * 1024 * 1024  # batches of a relay
MAX_LOST_VERSION_BODY_BYTES = 24 * 1024 * 1024  # the largest snapshot, as text
HOOKS = "/api/v1/hooks/"
LETTERS = "/api/v1/dlq/"
EMERGENCY_PAGE = "/emergency/"
EXCHANGE = "/api/v1/emergency/exchange"
RELAY_ORDERS = "/api/v1/relay/orders"
RELAY_STREAM = "/api/v1/relay/stream"
RELAY_BATCH = "/api/v1/relay/batch"
RELAY_LOST_VERSION = "/api/v1/relay/lost-version"
_MAX_BYTES_BY_PATH = {
    "/api/v1/configuration": MAX_CONFIGURATION_BODY_BYTES,
    "/api/v1/configuration/diff": MAX_CONFIGURATION_BODY_BYTES,
    EXCHANGE: MAX_EXCHANGE_BODY_BYTES,
    RELAY_ORDERS: MAX_EXCHANGE_BODY_BYTES,
    "/api/v1/openslo": MAX_OPENSLO_BODY_BYTES,
    RELAY_BATCH: MAX_RELAY_BODY_BYTES,
    RELAY_LOST_VERSION: MAX_LOST_VERSION_BODY_BYTES,
    "/api/v1/report": MAX_REPORT_BODY_BYTES,
    "/api/v1/sli": MAX_SLI_BODY_BYTES,
}
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
WAKE_CHANNEL = "switchgear:wake"
LIVE_CHANNEL = "switchgear:live"
ORDER_CHANNEL = "switchgear:orders"
MISSED_NOTE = b'{"missed":true}'  # On the live channel: notifications were lost.
_ENTITY_TAG = re.compile(r'(?:W/)?("[^"]*")')


def max_body_bytes(path: str) -> int:
    """Return the maximum size of a request body, by the URL's path."""
    if path.startswith(HOOKS):
        return MAX_HOOK_BODY_BYTES
    if path.startswith(LETTERS):
        return MAX_LETTER_BODY_BYTES
    if path.startswith(SCIM_ROOT):
        return MAX_SCIM_BODY_BYTES
    return _MAX_BYTES_BY_PATH.get(path.removesuffix("/"), MAX_BODY_BYTES)


def too_large(limit: int = MAX_BODY_BYTES) -> TooLarge:
    return TooLarge(f"A request body can have at most {limit // 1024} KiB.")


def matches_etag(if_none_match: str, etag: str) -> bool:
    """Return True if `If-None-Match` is `*` or contains `etag` or its gzip variant's ETag."""
    if if_none_match.strip() == "*":
        return True
    tags = _ENTITY_TAG.findall(if_none_match)
    return etag in tags or f'{etag[:-1]}-gzip"' in tags
