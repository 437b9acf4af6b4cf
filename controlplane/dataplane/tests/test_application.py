"""The application around the paths: request ids, health, forwarded requests, and lifespan."""

import asyncio
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controlplane.dataplane.application import Application
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.routes import build_routes, find_endpoint
from controlplane.dataplane.serving import call
from controlplane.dataplane.serving.call import Message, Receive, Scope, Send
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, ETAG, SCRAPER, ask, plane

SESSION = {"Cookie": "csrftoken=x; sessionid=abc"}


async def django(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for Django: answer with the path it was given."""
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def test_sane_request_id_of_the_caller_comes_back() -> None:
    headers = {**BEARER, "X-Request-ID": "req_7.a-B"}

    assert ask(plane(), "GET", "/api/v1/snapshot", headers).headers["X-Request-ID"] == "req_7.a-B"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\tb", "a,b", "<script>"])
def test_other_request_ids_are_replaced(given: str) -> None:
    response = ask(plane(), "GET", "/api/v1/snapshot", {**BEARER, "X-Request-ID": given})

    assert response.headers["X-Request-ID"] not in ("", given)


def test_request_ids_are_unique_also_on_errors() -> None:
    served = plane()
    paths = ["/api/v1/snapshot", "/health/live", "/nowhere", "/api/v1/snapshot/", "/api/v1/check"]

    request_ids = [ask(served, "GET", path).headers["X-Request-ID"] for path in paths * 3]

    assert len(set(request_ids)) == len(request_ids)


def test_live_asks_for_nothing_and_ready_for_a_snapshot() -> None:
    empty, served = Plane(), plane()
    served.state.confirm(served.state.now() - 3600)

    assert ask(empty, "GET", "/health/live").status_code == 200
    refused = ask(empty, "GET", "/health/ready/data")
    assert (refused.status_code, refused.json()["status"]) == (503, "not_ready")
    assert "Retry-After" in refused.headers
    ready = ask(served, "GET", "/health/ready/data")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["snapshot_age_seconds"] >= 3600


def test_alone_other_paths_are_404_as_a_problem() -> None:
    response = ask(plane(), "GET", "/api/v1/switches/", BEARER)

    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/problem+json"


def test_alone_its_page_says_how_to_stop_a_service_without_a_console() -> None:
    response = ask(plane(), "GET", "/")

    assert "SWITCHGEAR_FORCE_ENGAGED=segment:KEY" in response.text


def test_alone_its_own_metrics_are_for_tokens_that_may_read_them() -> None:
    served = plane()
    served.state.database_reachable = True
    served.state.confirm(served.state.now() - 3600)

    refused = [ask(served, "GET", "/metrics", headers).status_code for headers in ({}, BEARER)]
    response = ask(served, "GET", "/metrics", {"Authorization": f"Bearer {SCRAPER}"})

    assert refused == [401, 403]
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/plain")
    metrics = {
        sample.name: sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if not sample.labels
    }
    assert metrics["switchgear_snapshot_version"] == 17
    assert 3600 <= metrics["switchgear_snapshot_age_seconds"] < 3660
    assert metrics["switchgear_dataplane_database_up"] == 1
    assert metrics["switchgear_dataplane_held"] == 0
    assert metrics["process_resident_memory_bytes"] > 0
    # Only a web process exports these: their absence is an alarm.
    assert "switchgear_database_up" not in metrics


def test_alone_answers_to_services_are_counted_by_status() -> None:
    served = plane()
    for path, headers in (
        ("/api/v1/snapshot", BEARER),
        ("/api/v1/snapshot", {**BEARER, "If-None-Match": ETAG}),
        ("/api/v1/snapshot", {**BEARER, "If-None-Match": ETAG}),
        ("/api/v1/snapshot", {}),
        ("/api/v1/snapshot/", BEARER),
        ("/health/ready/data", {}),
        ("/", {}),
    ):
        ask(served, "GET", path, headers)

    response = ask(served, "GET", "/metrics", {"Authorization": f"Bearer {SCRAPER}"})

    counted = {
        sample.labels["code"]: sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if sample.name == "switchgear_dataplane_answers_total"
    }
    assert counted == {"200": 1, "304": 2, "401": 1}


@pytest.mark.parametrize(("path", "status"), [("/emergency/", 200), ("/emergency", 308)])
def test_embedded_the_emergency_page_does_not_wait_for_the_application_behind(
    path: str, status: int
) -> None:
    response = ask(plane(), "GET", path, SESSION, behind=django)

    assert response.status_code == status


def test_embedded_the_metrics_are_those_of_the_application_behind() -> None:
    assert ask(plane(), "GET", "/metrics", BEARER, behind=django).status_code == 299


@pytest.mark.parametrize("path", ["/", "/api/v1/switches/", "/api/v1/snapshots", "/health/ready"])
def test_embedded_other_paths_go_to_the_application_behind(path: str) -> None:
    response = ask(plane(), "GET", path, BEARER, behind=django)

    assert (response.status_code, response.text) == (299, path)
    assert find_endpoint(build_routes(plane()), path) is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (SESSION, 299),
        ({**SESSION, "Authorization": "Basic eDp5"}, 299),
        ({**SESSION, **BEARER}, 200),
        ({**SESSION, "X-API-Key": "sg_wrong_one"}, 401),
        ({"Cookie": "csrftoken=x"}, 299),
        ({}, 401),
    ],
)
def test_embedded_a_browser_without_a_token_goes_to_django(
    headers: dict[str, str], status: int
) -> None:
    served = plane()

    assert ask(served, "GET", "/api/v1/snapshot", headers, behind=django).status_code == status


def test_alone_a_session_is_no_credential() -> None:
    assert ask(plane(), "GET", "/api/v1/snapshot", SESSION).status_code == 401


def test_health_needs_no_django_even_with_a_session() -> None:
    assert ask(plane(), "GET", "/health/live", SESSION, behind=django).status_code == 200


@pytest.mark.parametrize(
    "path", ["/api/v1/snapshot", "/api/v1/snapshot/", "/api/v1/check/", "/health/ready/data"]
)
def test_own_paths_are_owned_in_either_form(path: str) -> None:
    assert find_endpoint(build_routes(plane()), path) is not None


def test_half_a_body_without_a_credential_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call, "DRAIN_SECONDS", 0.1)

    async def run() -> None:
        application = Application(plane())
        request = Exchange(application, "/api/v1/check", {}, method="POST", half=True)
        async with request:
            assert await request.receive_status(2) == 401

    asyncio.run(run())


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "READ_SECONDS", 0.1)

    async def run() -> None:
        application = Application(plane())
        request = Exchange(application, "/api/v1/check", BEARER, method="POST", half=True)
        async with request:
            assert await request.receive_status(2) == 408

    asyncio.run(run())


def test_failure_of_ours_is_a_problem_and_reaches_the_servers_log() -> None:
    served = plane()
    served.state.copy = object()  # type: ignore[assignment]
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/health/ready/data",
        "headers": [],
        "query_string": b"",
    }
    with pytest.raises(AttributeError):
        asyncio.run(Application(served)(scope, receive, send))

    assert messages[0]["status"] == 500
    assert (b"content-type", b"application/problem+json") in messages[0]["headers"]


def test_wrong_environment_fails_the_start_naming_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://nowhere")
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    asyncio.run(Application(Plane())({"type": "lifespan"}, receive, send))

    assert messages[0]["type"] == "lifespan.startup.failed"
    assert messages[0]["message"].startswith("DATABASE_URL")
