"""Requests for emergency orders, sent to several data planes at once."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from switchgear.cli import exits
from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.transport import Connection
from switchgear.settings import url_problem

ORDERS_PATH = "/api/v1/emergency/orders"
PLANE_SECONDS = 4.0
"""Timeout of a request. A data plane itself waits for the others for a second."""
MAX_PLANES = 32
MAX_ANSWER_BYTES = 2**20


@dataclass(frozen=True)
class PlaneAnswer:
    """The answer of the data plane at `url`: its acceptance, or the problem that it has.

    `acceptance` is None if the plane refused the order (then `status` is its status) or did not
    answer (then `status` is None).
    """

    url: str
    acceptance: Mapping[str, Any] | None
    status: int | None
    detail: str


def parse_urls(text: str) -> tuple[str, ...]:
    """Return the URLs in `text`, separated by spaces or commas.

    Raise :class:`exits.CommandExit` for an invalid one.
    """
    urls = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if len(urls) > MAX_PLANES:
        raise exits.make_usage_exit(f"SWITCHGEAR_PLANES has more than {MAX_PLANES} URLs.")
    for number, url in enumerate(urls, 1):
        if url_problem(url) is not None:
            detail = f"URL {number} in SWITCHGEAR_PLANES is invalid: use https://host, without"
            raise exits.make_usage_exit(f"{detail} credentials, query or fragment.")
    return urls


def basic_authorization(name: str, code: str) -> str:
    """Return the header for a person's name and emergency code (RFC 7617)."""
    return f"Basic {b64encode(f'{name}:{code}'.encode()).decode()}"


def send_to_all(
    urls: Sequence[str], authorization: str, body: Mapping[str, object]
) -> list[PlaneAnswer]:
    """Send one request to all data planes in parallel; return their answers in the same order."""
    content = json.dumps(body, ensure_ascii=False).encode()
    with ThreadPoolExecutor(len(urls)) as threads:
        return [*threads.map(lambda url: _send(url, authorization, content), urls)]


def _send(url: str, authorization: str, content: bytes) -> PlaneAnswer:
    headers = {
        "Accept": "application/json",
        "Authorization": authorization,
        "Content-Type": "application/json",
    }
    connection = Connection(Address.parse(url), agent="switchgear-cli")
    try:
        response = connection.request(
            *("POST", ORDERS_PATH, headers, content),
            seconds=PLANE_SECONDS,
            max_bytes=MAX_ANSWER_BYTES,
        )
    except RequestFailed as failed:
        maybe = "" if isinstance(failed.__cause__, ConnectionRefusedError) else "; check its orders"
        return PlaneAnswer(url, None, None, f"can't be reached: {failed.why}{maybe}")
    finally:
        connection.close()
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        document = None
    if response.status == 201 and _is_acceptance(document):
        return PlaneAnswer(url, document, 201, "")
    if response.status < 400 or not isinstance(document, dict) or "detail" not in document:
        return PlaneAnswer(url, None, None, f"returned {response.status}, not as a data plane does")
    # The advice for a status is about the console's tokens.
    detail = " ".join(exits.describe_problem({**document, "status": None}, exits.FAILED))
    return PlaneAnswer(url, None, response.status, detail)


def _is_acceptance(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return isinstance(document.get("accepted_by"), list) and type(document.get("planes")) is int
