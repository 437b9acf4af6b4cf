"""An HTTP server that behaves like Slack, with scripted faults."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from .fake_server import QuietHandler, serving
from .misbehaviour import Misbehaviour

POSTING = ("chat.postMessage", "webhook")
WEBHOOK_CHANNEL = "webhook"


class FakeSlack:
    """Channels with messages; each post is answered by the next step of `script`, then by `always`.

    `on` has scripts for single methods, such as `{"chat.update": ["500"]}`; `script` is for methods
    that post a message. Steps: see `misbehaviour`; `accepted STEP` stores the message first. `ids`
    are the channels that may be posted to by name.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.script: list[str] = []
        self.on: dict[str, list[str]] = {}
        self.always = "ok"
        self.requests: list[dict] = []
        self.channels: dict[str, list[dict]] = {}
        self.ids: dict[str, str] = {}
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._last = 0.0

    def note(self, handler: BaseHTTPRequestHandler, method: str, said: dict) -> str:
        with self._lock:
            self.requests.append(
                {
                    "path": handler.path,
                    "method": method,
                    "authorization": handler.headers.get("Authorization"),
                    "json": said,
                    "at": time.monotonic(),
                }
            )
            steps = self.on.get(method) or (self.script if method in POSTING else [])
            return steps.pop(0) if steps else self.always

    @property
    def posts(self) -> list[dict]:
        return [request for request in self.requests if request["method"] in POSTING]

    @property
    def texts(self) -> list[str]:
        return [request["json"]["text"] for request in self.posts]

    @property
    def methods(self) -> list[str]:
        return [request["method"] for request in self.requests]

    @property
    def messages(self) -> list[dict]:
        """The messages of all channels and threads, oldest first."""
        with self._lock:
            return [message for channel in self.channels.values() for message in channel]

    def perform(self, method: str, said: dict) -> dict:
        """Perform a method and return Slack's answer, without faults."""
        with self._lock:
            do = getattr(self, f"_{method.replace('.', '_')}", None)
            return do(said) if do else {"ok": False, "error": "unknown_method"}

    def delete(self, ts: str) -> None:
        """Delete a message, as a person might."""
        with self._lock:
            for channel in self.channels.values():
                channel[:] = [message for message in channel if message["ts"] != ts]

    def _webhook(self, said: dict) -> dict:
        self.channels.setdefault(WEBHOOK_CHANNEL, []).append({**said, "ts": self._ts()})
        return {"ok": True}

    def _chat_postMessage(self, said: dict) -> dict:
        channel = self.ids.get(said["channel"], said["channel"])
        if channel.startswith("U"):
            channel = f"D{channel[1:]}"
        thread = said.get("thread_ts")
        if thread and not self._find(channel, thread):
            return {"ok": False, "error": "message_not_found"}
        message = {**said, "channel": channel, "ts": self._ts()}
        self.channels.setdefault(channel, []).append(message)
        return {"ok": True, "channel": channel, "ts": message["ts"]}

    def _chat_update(self, said: dict) -> dict:
        message = self._find(said["channel"], said["ts"])
        if message is None:
            return {"ok": False, "error": "message_not_found"}
        message.update(said)
        return {"ok": True, "channel": said["channel"], "ts": said["ts"]}

    def _conversations_open(self, said: dict) -> dict:
        return {"ok": True, "channel": {"id": f"D{said['users'][1:]}"}}

    def _conversations_history(self, said: dict) -> dict:
        if not said["channel"].startswith(("C", "D", "G")):
            return {"ok": False, "error": "channel_not_found"}
        kept = self.channels.get(said["channel"], [])
        heads = [m for m in kept if not m.get("thread_ts") or m.get("reply_broadcast")]
        return self._page(heads[::-1], said)

    def _conversations_replies(self, said: dict) -> dict:
        kept = self.channels.get(said["channel"], [])
        thread = [m for m in kept if said["ts"] in (m["ts"], m.get("thread_ts"))]
        if not thread:
            return {"ok": False, "error": "thread_not_found"}
        return self._page(thread, said)

    def _page(self, messages: list[dict], said: dict) -> dict:
        oldest, limit = float(said.get("oldest", 0)), int(said.get("limit", 100))
        recent = [message for message in messages if float(message["ts"]) >= oldest]
        start = int(said.get("cursor", 0))
        more = str(start + limit) if start + limit < len(recent) else ""
        page = recent[start : start + limit]
        if said.get("include_all_metadata") != "true":
            page = [{k: v for k, v in m.items() if k != "metadata"} for m in page]
        return {"ok": True, "messages": page, "response_metadata": {"next_cursor": more}}

    def _find(self, channel: str, ts: str) -> dict | None:
        return next((m for m in self.channels.get(channel, []) if m["ts"] == ts), None)

    def _ts(self) -> str:
        self._last = max(time.time(), self._last + 0.000_001)
        return f"{self._last:.6f}"


@contextmanager
def fake_slack() -> Iterator[FakeSlack]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.slack = FakeSlack(server)
    with serving(server):
        try:
            yield server.slack
        finally:
            server.slack.closing.set()


class _Handler(Misbehaviour, QuietHandler):
    def do_POST(self) -> None:
        slack = self.server.slack
        self.closing = slack.closing
        self.method = self.path.removeprefix("/api/") if "/api/" in self.path else "webhook"
        self.said = self._parse_body(self.rfile.read(int(self.headers["Content-Length"])))
        step = slack.note(self, self.method, self.said)
        if step.startswith("accepted "):
            slack.perform(self.method, self.said)
            step = step.removeprefix("accepted ")
        self.misbehave(step)

    def behave(self) -> None:
        answer = self.server.slack.perform(self.method, self.said)
        self.send(200, json.dumps(answer).encode())

    def _parse_body(self, body: bytes) -> dict:
        if self.headers["Content-Type"].startswith("application/json"):
            return json.loads(body)
        return {key: values[0] for key, values in parse_qs(body.decode()).items()}
