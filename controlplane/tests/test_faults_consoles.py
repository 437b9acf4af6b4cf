"""Two web processes on two addresses, with one PostgreSQL and one Redis, are one console."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.conf import settings
from websockets.sync.client import ClientConnection, connect

from controlplane.dataplane.tests.processes import ROOT, addresses, web
from controlplane.tests.console_sockets import hears, receive_message
from controlplane.tests.installation import (
    PASSWORD,
    Installation,
    free_port,
    running,
    wait_until,
)
from controlplane.tests.plane_pollers import service

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
PUBLIC_URL = "http://console.example:8080"
REASON = "OpenAI 5xx on completions since 02:10"
CHAT = "/api/v1/switches/feature/chat"


@dataclass
class Consoles:
    """An installation, a second web process of it, and the addresses of both."""

    house: Installation
    urls: tuple[str, str]

    def browser(self, at: int, **headers: str) -> httpx.Client:
        return httpx.Client(base_url=self.urls[at], timeout=20, headers=headers)


class Visitor:
    """A browser that a load balancer leads to either console."""

    def __init__(self, consoles: Consoles, **headers: str) -> None:
        self._clients = [consoles.browser(0, **headers), consoles.browser(1, **headers)]
        self._cookies = httpx.Cookies()

    def get(self, at: int, path: str) -> httpx.Response:
        return self._request(at, "GET", path)

    def post(self, at: int, path: str, **fields: str) -> httpx.Response:
        """Send a form with the token of the page that was loaded last, from either console."""
        token = {"csrfmiddlewaretoken": self._cookies["csrftoken"]}
        return self._request(at, "POST", path, data={**fields, **token})

    def sign_in(self, at: int, name: str = "admin") -> httpx.Response:
        self.get(at, "/sign-in/")
        return self.post(at, "/sign-in/", username=name, password=PASSWORD)

    @property
    def cookie(self) -> str:
        return f"{settings.SESSION_COOKIE_NAME}={self._cookies[settings.SESSION_COOKIE_NAME]}"

    def _request(self, at: int, method: str, path: str, **more: object) -> httpx.Response:
        client = self._clients[at]
        client.cookies = self._cookies
        answer = client.request(method, path, **more)
        self._cookies.update(answer.cookies)
        client.cookies = httpx.Cookies()
        return answer


@pytest.fixture(scope="module")
def consoles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consoles]:
    folder: Path = tmp_path_factory.mktemp("consoles")
    variables = {
        "SECRET_KEY": uuid4().hex * 2,
        "PUBLIC_URL": PUBLIC_URL,
        "ALLOWED_HOSTS": "console.example,127.0.0.1",
    }
    with running(folder / "var", **variables) as house:
        port, data = free_port(), folder / "second"
        environment = {**addresses(house), "SWITCHGEAR_DATA_DIR": str(data)}
        collect = [sys.executable, "manage.py", "collectstatic", "--noinput"]
        subprocess.run(collect, cwd=ROOT, env=environment, check=True, capture_output=True)
        with web(environment, port, folder / "second-said.txt", ready_within=60) as second:
            wait_until(lambda: second.answers("/health/ready"), 60, second.read_output)
            yield Consoles(house, (house.url, second.url))


@pytest.fixture(scope="module")
def token(consoles: Consoles) -> str:
    return consoles.house.token(
        *("switches:read", "switches:write", "config:read", "config:write"),
        *("breakers:read", "report:write", "reports:read"),
    )


def api(consoles: Consoles, at: int, token: str) -> httpx.Client:
    return consoles.browser(at, Authorization=f"Bearer {token}")


def listen(consoles: Consoles, at: int, headers: dict[str, str]) -> ClientConnection:
    address = consoles.urls[at].replace("http", "ws") + "/ws/live/"
    return connect(address, additional_headers=headers, max_queue=None)


def engage(client: httpx.Client, path: str, **headers: str) -> httpx.Response:
    body = {"reason": REASON, "expires_in": "4h"}
    return client.post(f"{path}/engage", json=body, headers=headers)


@pytest.mark.smoke
def test_a_session_of_one_console_works_and_ends_on_the_other(consoles: Consoles) -> None:
    visitor = Visitor(consoles)
    assert visitor.sign_in(0).status_code == 302

    assert visitor.get(1, "/").status_code == 200
    page = visitor.get(0, "/switches/engage/")
    form = {"scope": "feature", "key": "forms", "reason": REASON, "how_long": "4h"}
    done = visitor.post(1, "/switches/engage/", **form)

    assert page.status_code == 200
    assert done.status_code == 302, re.sub(r"<[^>]*>|\s+", " ", done.text)[:2000]
    assert "feature:forms" in visitor.get(0, "/").text
    assert visitor.post(1, "/sign-out/").status_code == 302
    assert visitor.get(0, "/").status_code == 302


@pytest.mark.parametrize("passes_host", [True, False], ids=["host-passed", "host-replaced"])
def test_pages_of_the_public_address_may_post_to_both(
    consoles: Consoles, passes_host: bool
) -> None:
    host = {"Host": PUBLIC_URL.removeprefix("http://")} if passes_host else {}
    visitor = Visitor(consoles, Origin=PUBLIC_URL, **host)
    assert visitor.sign_in(0).status_code == 302

    for at in (1, 0):
        visitor.get(at, "/preferences/")
        saved = visitor.post(at, "/preferences/", time_zone="Europe/Berlin")
        assert saved.status_code != 403, saved.text
        with listen(consoles, at, {"Cookie": visitor.cookie, "Origin": PUBLIC_URL}) as socket:
            assert receive_message(socket)["topic"] == "hello"


def test_other_origins_may_post_to_neither(consoles: Consoles) -> None:
    visitor = Visitor(consoles, Origin="http://evil.example:8080")

    assert [visitor.sign_in(at).status_code for at in (0, 1)] == [403, 403]


def test_a_change_on_one_console_reaches_sockets_and_snapshots_of_the_other(
    consoles: Consoles, token: str
) -> None:
    with listen(consoles, 1, {"Authorization": f"Bearer {token}"}) as socket:
        receive_message(socket)
        with api(consoles, 0, token) as first, api(consoles, 1, token) as second:
            version = engage(first, "/api/v1/switches/feature/told").json()["version"]

            note = hears(socket, "switches", id="feature:told")
            wait_until(lambda: second.get("/api/v1/snapshot").json()["version"] >= version, 5)
            listed = second.get("/api/v1/switches/feature/told/").json()

    assert (note["data"]["state"], listed["state"]) == ("engaged", "engaged")


def test_a_repeated_request_is_answered_once_by_both(consoles: Consoles, token: str) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    with api(consoles, 0, token) as first, api(consoles, 1, token) as second:
        answers = [engage(each, CHAT, **key) for each in (first, second)]
        other = second.post(
            f"{CHAT}/engage", json={"reason": f"{REASON}, again", "expires_in": "4h"}, headers=key
        )

    assert [each.status_code for each in answers] == [answers[0].status_code] * 2
    assert answers[0].json() == answers[1].json()
    assert other.status_code == 422


def test_a_configuration_planned_on_one_console_is_applied_by_the_other(
    consoles: Consoles, token: str
) -> None:
    text = "switches:\n  feature:configured: {owner: Core}\n"
    files = {"files": {"switches.yaml": text}}
    with api(consoles, 0, token) as first, api(consoles, 1, token) as second:
        plan = first.post("/api/v1/configuration/diff", json=files).json()["plan"]
        body = {**files, "plan": plan, "reason": "first import of the file"}
        done = second.post("/api/v1/configuration/", json=body)
        exported = first.get("/api/v1/configuration/").json()["files"]

    assert done.status_code == 200, done.text
    assert "feature:configured" in exported["switches.yaml"]


def test_reports_to_one_console_are_live_numbers_of_the_other(
    consoles: Consoles, token: str, tmp_path: Path
) -> None:
    details = {"name": "core", "stream": False, "output": tmp_path / "service"}
    with (
        service(consoles.urls[0], token, ["feature:seen"], **details),
        api(consoles, 1, token) as second,
    ):

        def read() -> dict[str, Any]:
            found: dict[str, Any] = second.get("/api/v1/switches/feature/seen/preview").json()
            return found

        wait_until(lambda: read()["instances_total"] == 1, 30, read)


def test_guesses_on_both_consoles_count_together(consoles: Consoles) -> None:
    visitor, limit = Visitor(consoles), settings.AXES_FAILURE_LIMIT

    answers = [visitor.sign_in(n % 2, "mallory").status_code for n in range(limit)]

    assert answers == [422] * (limit - 1) + [429]
    assert [visitor.sign_in(at, "mallory").status_code for at in (0, 1)] == [429, 429]
