"""OpenFeature's own client against the data plane under the real server."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from granian.constants import Interfaces
from granian.server.embed import Server
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagEvaluationDetails, Reason

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import background, wait_until
from controlplane.dataplane.tests.served import BEARER, EPOCH, READER, REPORTER, plane
from controlplane.dataplane.tests.test_alone import answers, granian, variables
from controlplane.dataplane.tests.test_following import engage, make_token
from controlplane.dataplane.tests.test_ofrep import NOW, SALT, entry
from switches.snapshot import SnapshotEntry, SnapshotVersion

DOCUMENTATION = Path(__file__).resolve().parents[3] / "docs" / "openfeature.md"
FLAGS = "/ofrep/v1/evaluate/flags"
KNOWN = frozenset({"segment:finance", "feature:export", "feature:search"})


class Served:
    """A plane at an address, whose content tests change while it serves."""

    def __init__(self, url: str, plane: Plane, call: Any) -> None:
        self.url = url
        self._plane = plane
        self._call = call
        self._version = 17

    def publish(self, *entries: SnapshotEntry) -> None:
        self._version += 1
        published = Copy.render(SnapshotVersion(EPOCH, self._version, NOW), entries)

        async def install() -> None:
            state = self._plane.state
            state.install_copy(published, confirmed_at=state.now())

        self._call(install())


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    made = plane()
    made.state.install_known(len(KNOWN), KNOWN)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with background() as loop:
        servers: list[Server] = []

        async def start() -> None:
            servers.append(
                Server(
                    Application(made),
                    port=port,
                    interface=Interfaces.ASGINL,
                    log_enabled=False,
                    websockets=False,
                )
            )
            loop.loop.create_task(servers[0].serve())

        loop.run(start())
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(url, "/health/ready/data"), 10)
        yield Served(url, made, loop.run)
        loop.loop.call_soon_threadsafe(servers[0].stop)


def client_of(url: str, token: str | None = READER, timeout: float = 5.0) -> OpenFeatureClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    provider = OFREPProvider(url, headers_factory=lambda: headers, timeout=timeout)
    api.set_provider(provider, "switchgear")
    return api.get_client("switchgear")


@pytest.fixture(autouse=True)
def shut_down() -> Iterator[None]:
    yield
    api.clear_providers()


def details(
    client: OpenFeatureClient, flag: str, targeting_key: str | None = "u1", *, default: bool = True
) -> FlagEvaluationDetails[bool]:
    return client.get_boolean_details(flag, default, EvaluationContext(targeting_key))


def test_released_flag_is_on(server: Served) -> None:
    server.publish()

    found = details(client_of(server.url), "segment:finance", default=False)

    assert (found.value, found.variant, found.reason) == (True, "on", Reason.STATIC)
    assert found.error_code is None
    assert found.flag_metadata["switch"] == "segment:finance"


def test_engaged_flag_is_off_whatever_the_default(server: Served) -> None:
    server.publish(entry("segment:finance"))

    for default in (True, False):
        found = details(client_of(server.url), "segment:finance", default=default)
        assert (found.value, found.variant, found.reason) == (False, "off", Reason.DISABLED)
        assert found.error_code is None
        assert found.flag_metadata["cause"] == "정산 오류 in segment:finance"


def test_ramping_flag_splits_by_targeting_key(server: Served) -> None:
    client = client_of(server.url)
    for allow_percent, value in (("10.94", False), ("10.95", True)):
        server.publish(entry("feature:export", allow_percent, salt=SALT))
        found = details(client, "feature:export", "u1")
        assert (found.value, found.reason) == (value, Reason.SPLIT)

    server.publish(entry("feature:export", "99.99"))
    assert details(client, "feature:export", None).value is False
    assert client.get_boolean_value("feature:export", True) is False


def test_global_switch_turns_off_what_was_on(server: Served) -> None:
    client = client_of(server.url)
    server.publish()
    assert details(client, "feature:search").value is True

    server.publish(entry("global:all"))

    found = details(client, "feature:search")
    assert (found.value, found.reason) == (False, Reason.DISABLED)
    assert found.flag_metadata["switch"] == "global:all"


def test_context_of_any_kind_goes_with_the_targeting_key(server: Served) -> None:
    server.publish(entry("feature:export", "100"))
    context = EvaluationContext(
        "사용자-7 👩‍👩‍👧", {"plan": "pro", "age": 7, "tags": ["a"], "at": None}
    )
    found = client_of(server.url).get_boolean_details("feature:export", False, context)
    assert (found.value, found.reason) == (True, Reason.SPLIT)


@pytest.mark.parametrize("default", [True, False])
def test_unknown_flag_gives_the_default_and_says_so(server: Served, default: bool) -> None:
    found = details(client_of(server.url), "segment:nobody", default=default)
    assert (found.value, found.reason) == (default, Reason.ERROR)
    assert found.error_code is ErrorCode.FLAG_NOT_FOUND
    assert "segment:nobody" in (found.error_message or "")


def test_flag_is_no_text(server: Served) -> None:
    server.publish()
    found = client_of(server.url).get_string_details("segment:finance", "on")
    assert (found.value, found.error_code) == ("on", ErrorCode.TYPE_MISMATCH)


def test_context_that_is_refused_gives_the_default_and_says_why(server: Served) -> None:
    context = EvaluationContext(None, {"targetingKey": 7})
    found = client_of(server.url).get_boolean_details("segment:finance", False, context)
    assert (found.value, found.error_code) == (False, ErrorCode.INVALID_CONTEXT)
    assert found.error_message == "targetingKey must be a string."


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (None, "unauthorized"),
        ("sg_reader0001_wrong", "unauthorized"),
        (REPORTER, "forbidden"),
    ],
)
def test_wrong_token_gives_the_default(server: Served, token: str | None, message: str) -> None:
    found = details(client_of(server.url, token), "segment:finance")
    assert (found.value, found.error_code) == (True, ErrorCode.GENERAL)
    assert found.error_message == message


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return id and content of each event of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        elif "data" in fields:
            assert fields["event"] == "message"
            yield fields["id"], json.loads(fields["data"])
            fields = {}


def test_stream_named_by_bulk_tells_when_to_refetch(server: Served) -> None:
    server.publish()
    bulk = httpx.post(server.url + FLAGS, headers=BEARER, json={})
    (named,) = bulk.json()["eventStreams"]
    address = httpx.URL(server.url).join(named["endpoint"]["requestUri"])

    with httpx.stream("GET", address, headers=BEARER, timeout=10) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        received = events(stream.iter_lines())
        now = next(received)[1]
        assert now == {"type": "refetchEvaluation", "etag": bulk.headers["ETag"]}
        threading.Timer(0.1, server.publish, [entry("segment:finance")]).start()
        changed_id, changed = next(received)

    assert changed["etag"] != now["etag"]
    refetched = httpx.post(
        server.url + FLAGS,
        headers={**BEARER, "If-None-Match": bulk.headers["ETag"]},
        params={"flagConfigEtag": changed["etag"]},
        json={},
    )
    assert refetched.status_code == 200
    assert refetched.headers["ETag"] == changed["etag"]
    assert not {flag["key"]: flag["value"] for flag in refetched.json()["flags"]}["segment:finance"]

    resumed = {**BEARER, "Last-Event-ID": changed_id}
    with httpx.stream("GET", address, headers=resumed, timeout=10) as stream:
        threading.Timer(0.1, server.publish).start()
        assert next(events(stream.iter_lines()))[0] != changed_id


def test_server_that_is_gone_gives_the_default() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{probe.getsockname()[1]}"
    for default in (True, False):
        found = details(client_of(gone), "segment:finance", default=default)
        assert (found.value, found.error_code) == (default, ErrorCode.GENERAL)


def test_server_that_hangs_gives_the_default_at_the_clients_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        found = details(client_of(url, timeout=0.3), "segment:finance")
    assert (found.value, found.error_code) == (True, ErrorCode.GENERAL)
    assert 0.3 <= time.monotonic() - began < 2


def test_examples_of_the_documentation_do_what_they_say(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHGEAR_URL", server.url)
    monkeypatch.setenv("SWITCHGEAR_TOKEN", READER)
    example: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", DOCUMENTATION.read_text("utf-8"), re.DOTALL):
        exec(block, example)
    server.publish(entry("feature:export"))

    assert example["may_export"]("user-42") is False
    assert example["allowed"]("feature:export", "user-42") is False

    example["provider"].base_url = "http://127.0.0.1:1"
    assert example["may_export"]("user-42") is True
    assert example["allowed"]("feature:export", "user-42") is False
    assert example["allowed"]("feature:export", "somebody else") is True


def test_service_sees_what_is_engaged_and_keeps_seeing_it_without_the_database(
    idle: Following, tmp_path: Path
) -> None:
    make_token()
    engage("finance")
    with granian(variables(idle, tmp_path)) as (_, url):
        wait_until(lambda: answers(url, "/health/ready/data"), 15)
        client = client_of(url, "sg_reader0001_secret")
        assert details(client, "segment:finance").value is False
        assert details(client, "segment:retail").error_code is ErrorCode.FLAG_NOT_FOUND

        engage("retail")
        wait_until(lambda: details(client, "segment:retail").value is False, 5)

        idle.database.cut()
        found = details(client, "segment:retail")
        assert (found.value, found.reason) == (False, Reason.DISABLED)
