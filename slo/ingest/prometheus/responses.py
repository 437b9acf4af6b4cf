"""Responses of a Prometheus server to instant queries. Pure.

Format: https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

MAX_OUTPUT_LENGTH = 300
MAX_VALUE = 2.0**53
"""Highest count; above it, floats can't represent every integer."""
MAX_NUMBER_LENGTH = 400
"""Most characters of a number; older servers write large floats without an exponent."""
_NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?")


class InvalidResponse(Exception):
    """The response is not the value of one counter; the message is for the query's author."""


def parse_counter(body: bytes) -> float | None:
    """Return the value of the counter in a response; None if the response has no series.

    Raise :class:`InvalidResponse` if it is not one number, from 0 to 2^53.
    """
    data = _parse_document(body).get("data")
    if not isinstance(data, Mapping):
        raise InvalidResponse("the response has no data")
    kind, result = data.get("resultType"), data.get("result")
    if kind not in {"vector", "scalar"} or not isinstance(result, list):
        raise InvalidResponse(
            f"it returned a {_one_line(kind)}, but must return a number (instant vector)"
        )
    if kind == "scalar":
        return _parse_value(result)
    if not result:
        return None
    if len(result) > 1:
        raise InvalidResponse(f"it returned {len(result)} series, but must return one: use sum(…)")
    (series,) = result
    if not isinstance(series, Mapping) or "value" not in series:
        raise InvalidResponse("it returned a histogram, but must return a number")
    return _parse_value(series["value"])


def describe_failure(status: int, body: bytes) -> str:
    """Return a description of an error response, with the message of Prometheus if any."""
    try:
        document = _parse_document(body)
    except InvalidResponse:
        document = {}
    text = _one_line(document.get("error") or "")
    return f"status {status}: {text}" if text else f"status {status}"


def _parse_document(body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidResponse("the response is not JSON: is this a Prometheus server?") from error
    if not isinstance(document, Mapping):
        raise InvalidResponse("the response is not from Prometheus")
    return document


def _parse_value(pair: Any) -> float:
    """Return the second element of a pair `[time, value]`, such as `[1435781451.781, "1.5"]`."""
    text = pair[1] if isinstance(pair, list) and len(pair) == 2 else None
    if not isinstance(text, str):
        raise InvalidResponse("the response is not from Prometheus")
    is_number = len(text) <= MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text)
    value = float(text) if is_number else math.nan
    if not math.isfinite(value):
        raise InvalidResponse(f"its value is {_one_line(text)}, but must be a number")
    if value < 0:
        raise InvalidResponse(f"its value is {_one_line(text)}, but a counter can't be negative")
    if value > MAX_VALUE:
        raise InvalidResponse(f"its value is {_one_line(text)}, but must be at most 2^53")
    return value


def _one_line(text: Any) -> str:
    printable = "".join(one if one.isprintable() else " " for one in str(text))
    return " ".join(printable.split())[:MAX_OUTPUT_LENGTH]
