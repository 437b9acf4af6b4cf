"""Checks of event streams, if bulk evaluations name any."""

import json
import time
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

from ofrep_conformance.registry import Level, Skip, add_check
from ofrep_conformance.session import FLAGS_PATH, Session
from ofrep_conformance.shapes import find_status_problems

SOURCE = "ADR-0008; event-streams.yaml"
MAX_LINES = 200


def list_streams(session: Session) -> list[Any]:
    document = session.evaluate_all().as_object()
    if "eventStreams" not in document:
        raise Skip("no event stream is named")
    streams = document["eventStreams"]
    return streams if isinstance(streams, list) else [streams]


def find_url(session: Session) -> str:
    """Return the address of the first stream of server-sent events."""
    for stream in list_streams(session):
        if isinstance(stream, dict) and stream.get("type") == "sse" and (url := _address(stream)):
            return url
    raise Skip("no stream of type sse with an address is named")


def _address(stream: dict[str, Any]) -> str:
    if isinstance(stream.get("url"), str):
        return str(stream["url"])
    endpoint = stream.get("endpoint")
    if not isinstance(endpoint, dict) or not isinstance(endpoint.get("requestUri"), str):
        return ""
    return str(endpoint.get("origin") or "") + str(endpoint["requestUri"])


@add_check(
    "events.entries",
    Level.MUST,
    "An event stream has a type and, if that is sse, a url or an endpoint with a requestUri.",
    SOURCE,
)
def check_entries(session: Session) -> Iterator[str]:
    for stream in list_streams(session):
        if not isinstance(stream, dict) or not isinstance(stream.get("type"), str):
            yield "an entry of eventStreams has no type"
            continue
        if stream["type"] == "sse" and not _address(stream):
            yield "a stream of type sse has neither url nor endpoint.requestUri"
        delay = stream.get("inactivityDelaySec", 120)
        if isinstance(delay, bool) or not isinstance(delay, int) or delay < 1:
            yield f"inactivityDelaySec is {delay!r} instead of an integer of at least 1"


@add_check("events.connect", Level.MUST, "The stream gives 200 and text/event-stream.", SOURCE)
def check_connect(session: Session) -> Iterator[str]:
    with session.open_stream(find_url(session)) as (head, _):
        yield from find_status_problems(head, 200)
        if head.media_type != "text/event-stream":
            yield f"Content-Type is {head.media_type or 'missing'}"


@add_check(
    "events.first-event",
    Level.MUST,
    "An event's data is a JSON object with a type.",
    SOURCE,
)
def check_first_event(session: Session) -> Iterator[str]:
    with session.open_stream(find_url(session)) as (_, received):
        data = []
        deadline = time.monotonic() + session.manifest.timeout
        try:
            for _ in range(MAX_LINES):
                if time.monotonic() > deadline:
                    break
                line = received.readline(65536).decode("utf-8", "replace").rstrip("\r\n")
                if line.startswith("data:"):
                    data.append(line.removeprefix("data:").removeprefix(" "))
                elif not line and data:
                    break
        except (OSError, HTTPException):
            pass
    if not data:
        raise Skip("no event arrived in time; servers may send none until a change")
    try:
        event = json.loads("\n".join(data))
    except ValueError:
        yield "the data of an event is not JSON"
        return
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        yield "the data of an event has no type"


@add_check(
    "events.refetch",
    Level.MUST,
    "A bulk evaluation with flagConfigEtag is answered like any other.",
    SOURCE,
)
def check_refetch(session: Session) -> Iterator[str]:
    path = f"{FLAGS_PATH}?flagConfigEtag=%22conformance%22&flagConfigLastModified=1771622898"
    response = session.post(path, {"context": session.manifest.context})
    yield from find_status_problems(response, 200)
