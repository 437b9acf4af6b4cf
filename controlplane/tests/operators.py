"""Operators that engage switches during a flood: a program, a person, a Slack user."""

import secrets
import time
from collections.abc import Callable

import httpx

from controlplane.notify.interactions.tests.slack_requests import FORM, PATH, payload, signed
from controlplane.tests.installation import PASSWORD, Installation

ROUNDS = 4
REASON = "Test of floods: providers answer 5xx since 02:10, INC-4411"
MAKE_LEE = (
    "from controlplane.core.http.tests.callers import person; lee = person('approver', 'lee'); "
    "lee.slack_user_id = 'ULEE'; lee.save()"
)


class Operators:
    """An operator of each kind, with their own credentials."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.program = installation.client(installation.token("switches:write", "switches:read"))
        self.person = httpx.Client(base_url=installation.url, timeout=15)
        self.person.get("/sign-in/")
        signed_in = self._send("/sign-in/", username="admin", password=PASSWORD)
        assert signed_in.status_code == 302
        assert self.person.get("/").status_code == 200
        self.slack = httpx.Client(base_url=installation.url, timeout=15)
        self.read = installation.token("slo:read", "slo:write", "switches:read", "report:write")
        self.poll = installation.token("switches:read")
        self.write = installation.token("switches:write", "switches:read")

    def _send(self, path: str, **fields: str) -> httpx.Response:
        token = {"X-CSRFToken": self.person.cookies["csrftoken"]}
        return self.person.post(path, data=fields, headers=token)

    def by_token(self) -> None:
        key = secrets.token_hex(4)
        path = f"/api/v1/switches/feature/{key}/engage"
        response = self.program.post(path, json={"reason": REASON, "expires_in": "24h"})
        assert response.status_code in {200, 201}, response.text

    def by_page(self) -> None:
        key = secrets.token_hex(4)
        answer = self._send(
            "/switches/engage/", scope="feature", key=key, reason=REASON, how_long="24h",
            on_expiry="hold",
        )  # fmt: skip
        assert answer.status_code == 302, answer.text
        assert key in answer.headers["Location"]

    def by_slack(self) -> None:
        hooks = "http://127.0.0.1:9/actions/T1/42/ULEE"
        more = {"trigger_id": secrets.token_hex(8)}
        body = payload("approve", {"approval": 0}, "ULEE", hooks, **more)
        response = self.slack.post(
            PATH, content=body, headers={**signed(body), "Content-Type": FORM}
        )
        assert response.status_code == 200

    def measured(self) -> dict[str, list[float]]:
        ways: dict[str, Callable[[], None]] = {
            "token": self.by_token,
            "page": self.by_page,
            "slack": self.by_slack,
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                began = time.monotonic()
                way()
                found[name].append(round(time.monotonic() - began, 3))
        return found
