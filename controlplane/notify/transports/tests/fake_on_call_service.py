"""An HTTP server in place of PagerDuty and Opsgenie that keeps incidents by their key."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest

from controlplane.core.clock import db_now
from controlplane.notify.delivery.tests.fake_server import serving
from controlplane.notify.models.targets import Target

ROUTING_KEY = "R0utingKeyR0utingKeyR0utingKey42"
API_KEY = "eb243592-faa2-4ba2-a551-1afdf565c889"
KEYS = {"pagerduty": ROUTING_KEY, "opsgenie": API_KEY}
STATES = {"trigger": "open", "acknowledge": "acknowledged", "resolve": "closed", "close": "closed"}


class FakeOnCallService:
    """A service that answers by the next step of its script (`429 Retry-After 90`), then with 202.

    An invalid key is rejected as by the real services: with 400 by PagerDuty, 401 by Opsgenie.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.script: list[str] = []
        self.requests: list[dict] = []
        self.incidents: dict[str, str] = {}

    def take(self, path: str, authorization: str, body: dict) -> int:
        """Apply a request; return the status of the response."""
        if path == "/v2/enqueue":
            if body.get("routing_key") != ROUTING_KEY:
                return 400
            self._change(body["dedup_key"], body["event_action"])
        elif authorization != f"GenieKey {API_KEY}":
            return 401
        elif path == "/v2/alerts":
            if len(body["message"]) > 130:
                return 422
            self._change(body["alias"], "trigger")
        else:
            _, _, _, alias, action = path.split("/")
            self._change(unquote(alias), action)
        return 202

    def _change(self, key: str, action: str) -> None:
        if action == "trigger" or self.incidents.get(key, "closed") != "closed":
            self.incidents[key] = STATES[action]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service = self.server.service
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.requests.append({"path": self.path, "body": body, "headers": dict(self.headers)})
        step = service.script.pop(0) if service.script else ""
        path = urlsplit(self.path).path
        status = step.split(" ")[0] or service.take(path, self.headers["Authorization"], body)
        self.send_response(int(status))
        if len(step.split(" ")) > 1:
            self.send_header(*step.split(" ")[1:])
        self.end_headers()
        self.wfile.write(b'{"status": "it said R0utingKey"}')

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def fake_on_call_service() -> Iterator[FakeOnCallService]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.service = FakeOnCallService(server.server_address[1])
    with serving(server):
        yield server.service


def create_channel(transport, key=None, region="us"):
    """Create a channel of `pagerduty` or `opsgenie`, by default with the key that is accepted."""
    secret, _ = transport.SETTINGS.fields
    target = Target(name="pager", kind="channel", address=transport.KEY, created_at=db_now())
    given = {secret.name: key or KEYS[transport.KEY], transport.REGION.name: region}
    transport.SETTINGS.write(target, given)
    target.save()
    return f"{transport.KEY}:{target.pk}"


@pytest.fixture
def on_call_service(settings):
    """Start a service, with the settings of both kinds of target set to its URL."""
    settings.WEBHOOK_ALLOW = ("127.0.0.0/8",)
    settings.PUBLIC_URL = "https://switchgear.example.org"
    settings.ENVIRONMENT_NAME = "staging"
    with fake_on_call_service() as service:
        settings.PAGERDUTY_API_URL = settings.OPSGENIE_API_URL = service.url
        yield service
