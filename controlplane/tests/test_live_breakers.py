"""A breaker's state, from an instance's report to the open sockets."""

import time
from typing import Any
from uuid import uuid4

import httpx
import pytest

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, token_text
from controlplane.tests.console_sockets import Console, hears, receive_message
from controlplane.tests.installation import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]
NAME = "core->told-oracle"


class Instance:
    """Reports to a web process by a token of its own."""

    def __init__(self, console: Console) -> None:
        owner = person("admin", "reports-owner")
        token = token_text(owner, ["report:write"], name="reports")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._url = f"{console.server.url}/api/v1/report"
        self._boot, self._seq = str(uuid4()), 0
        self._started_at = timestamp(db_now())
        wait_until(lambda: self._post().status_code != 401, 5)

    def reports(self, **breaker: Any) -> None:
        answer = self._post({"dependency": NAME, **breaker})
        assert answer.status_code in {200, 202}, answer.text

    def _post(self, *breakers: dict[str, Any]) -> httpx.Response:
        self._seq += 1
        document = {
            "service": "core",
            "instance": "told-1",
            "boot": self._boot,
            "started_at": self._started_at,
            "seq": self._seq,
            "sent_at": timestamp(db_now()),
            "breakers": list(breakers),
        }
        return httpx.post(self._url, json=document, headers=self._headers, timeout=5)


@pytest.mark.slow
def test_breaker_that_opens_is_told_within_a_moment_as_the_api_shows_it(console, transactional_db):
    instance = Instance(console)
    listener = token_text(person("admin", "listener"), ["breakers:read"], name="listens")
    with console.listen(listener) as listening:
        assert set(receive_message(listening)["seq"]) == {"breakers", "degradation"}
        instance.reports(state="closed")
        hears(listening, "breakers", name=NAME)

        reported = time.monotonic()
        instance.reports(state="open", failure_rate=0.6, calls=20)
        notes = hears(listening, "breakers", name=NAME, state="open")
        took = time.monotonic() - reported

        instance.reports(state="closed")
        again = hears(listening, "breakers", name=NAME, state="closed")

    assert took < 1
    assert notes["event"] == "breaker.changed"
    assert again["seq"] > notes["seq"]
    rows = as_role("viewer").get("/breakers/", {"q": "told-oracle"}).json()["results"]
    assert rows[0].keys() == again["data"].keys()
    assert rows[0]["state"] == "closed"
