"""Requests generated from the OpenAPI document, and checks of their responses.

Schemathesis generates the cases. Half of them would be rejected by rules that no schema can express
(a reason has to be informative), so valid texts replace some, and existing objects some ids in
paths.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import requests
from django.test import Client
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.specs.openapi import checks

from controlplane.dataplane.application import Application
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.lines import Background
from controlplane.tests.security import existing_objects
from controlplane.tests.security.callers import undone

HOST = "http://testserver"
SEED = 20_261_121
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
WORDS: dict[str, Any] = {
    "arms": {"a": {"expected": 1, "count": 9000}, "b": {"expected": 1, "count": 1000}},
    "callee": "oracle",
    "caller": "core",
    "comment": "looked at it",
    "expires_in": "2h",
    "evidence": {"errors": 17},
    "justification": "vendor says it is mended, queue empty",
    "mode": "immediate",
    "on_expiry": "hold",
    "pattern": "core/*",
    "rating": "useful",
    "reason": "card payments charged twice",
    "slug": "oracle-db",
    "switch": "experiment:checkout-b",
    "switches": ["segment:finance", "segment:emea"],
    "target": 0.99,
}
# What generators think up for credentials; the caller brings its own.
MADE_UP = ("authorization", "x-api-key", "cookie", "content-length")
Send = Callable[[requests.PreparedRequest], Response]


Asked = tuple[requests.PreparedRequest, Response, str]


def generate_requests(
    operation: Any, send: Send, examples: int, there: Mapping[str, list[str]]
) -> Iterator[Asked]:
    """Yield each generated request, with the response's violations of the OpenAPI document.

    There are half as many invalid requests as valid ones. `there` are path arguments of existing
    objects.
    """
    modes = {GenerationMode.POSITIVE: examples, GenerationMode.NEGATIVE: (examples + 1) // 2}
    for mode, count in modes.items():
        # Of an operation without arguments and body there are no bad ones.
        with suppress(Unsatisfiable):
            yield from _run_cases(operation.as_strategy(generation_mode=mode), send, count, there)


def _run_cases(
    cases: Any, send: Send, examples: int, there: Mapping[str, list[str]]
) -> list[Asked]:
    found: list[Asked] = []

    @seed(SEED)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=cases, pick=st.integers(0, 11))
    def ask(case: Any, pick: int) -> None:
        if pick % 4:
            _lead_somewhere(case, there, pick)
        if pick % 3 and isinstance(case.body, dict):
            case.body |= {name: WORDS[name] for name in case.body.keys() & WORDS.keys()}
        request = prepared(case)
        answer = send(request)
        found.append((request, answer, _complaints(case, answer)))

    ask()
    return found


def make_client_sender(client: Client) -> Send:
    """Return a sender of requests to Django, as this client, that rolls back changes."""

    def send(request: requests.PreparedRequest) -> Response:
        path, _, query = request.path_url.partition("?")
        headers = clean_headers(request)
        kind = headers.pop("content-type", "application/octet-stream")
        headers.pop("accept-encoding", None)  # The checks read what is not compressed.
        cookies = client.cookies.copy()
        with undone():
            answer = client.generic(
                str(request.method),
                path,
                request.body or b"",
                content_type=kind,
                headers=headers,
                QUERY_STRING=query,
            )
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        client.cookies = cookies
        return answered(request, answer.status_code, answer.headers.items(), content)

    return send


def by_plane(plane: Plane, loop: Background, headers: Mapping[str, str]) -> Send:
    """Return a sender of requests to the data plane; it reads only the beginning of a stream."""

    def send(request: requests.PreparedRequest) -> Response:
        return loop.run(_through(plane, request, {**clean_headers(request), **headers}))

    return send


async def _through(
    plane: Plane, request: requests.PreparedRequest, headers: Mapping[str, str]
) -> Response:
    body = request.body or b""
    asked_for = Exchange(
        Application(plane),
        request.path_url,
        headers,
        method=str(request.method),
        body=body.encode() if isinstance(body, str) else body,
    )
    async with asked_for as exchange:
        status = await exchange.receive_status()
        is_stream = exchange.headers.get("content-type", "").startswith("text/event-stream")
        content = b"" if is_stream else await exchange.part()
    return answered(request, status, exchange.headers.items(), content)


def prepared(case: Any) -> requests.PreparedRequest:
    """Return the request as it would be sent."""
    given_ = case.as_transport_kwargs(base_url=HOST)
    wanted = ("method", "url", "headers", "params", "data", "json")
    return requests.Request(**{name: given_[name] for name in wanted if name in given_}).prepare()


def clean_headers(request: requests.PreparedRequest) -> dict[str, str]:
    """Return the request's headers without generated credentials."""
    texts = {
        name.lower(): value.decode("latin-1") if isinstance(value, bytes) else value
        for name, value in request.headers.items()
    }
    return {name: value for name, value in texts.items() if name not in MADE_UP}


def answered(
    request: requests.PreparedRequest,
    status: int,
    headers: Iterable[tuple[str, str]],
    content: bytes,
) -> Response:
    gathered: dict[str, list[str]] = {}
    for name, value in headers:
        gathered.setdefault(name, []).append(value)
    return Response(status, gathered, content, request, elapsed=0.0, verify=True)


def _lead_somewhere(case: Any, there: Mapping[str, list[str]], pick: int) -> None:
    for name in case.path_parameters or {}:
        if choice := existing_objects.choice(there, case.path, name):
            case.path_parameters[name] = choice[pick % len(choice)]


def _complaints(case: Any, answer: Response) -> str:
    try:
        case.validate_response(answer, checks=CHECKS)
    except BaseExceptionGroup as group:
        return "; ".join(
            sorted({str(one).partition("\n")[0] or repr(one) for one in group.exceptions})
        )
    return ""
