"""A small OFREP server for the suite's own tests, right but for the defects it is started with."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "Bearer secret"
FLAGS = "/ofrep/v1/evaluate/flags"
VALUES: dict[str, Any] = {
    "dark-mode": True,
    "payments": False,
    "greeting": "hello",
    "limit": 3,
    "theme": {"color": "red"},
}
MANIFEST = {
    "headers": {"Authorization": TOKEN},
    "flags": [
        *({"key": key, "value": value} for key, value in VALUES.items()),
        {"key": "split", "value": True, "requires_targeting_key": True},
    ],
}
MAX_BODY_BYTES = 65_536


class Refusal(Exception):
    """An error response."""

    def __init__(self, status: int, code: str, **more: Any) -> None:
        super().__init__(code)
        self.status, self.document = status, {"errorCode": code, **more}


class Handler(BaseHTTPRequestHandler):
    """Answer requests; each `self.has(DEFECT)` is a place that can be wrong."""

    protocol_version = "HTTP/1.1"
    server: "Reference"

    def has(self, defect: str) -> bool:
        return defect in self.server.defects

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/events":
            return self.answer_events()
        if path == "/ofrep/v1/configuration":
            return self.answer_configuration()
        if self.has("get accepted"):
            return self.answer(200, {})
        return self.answer(
            405, {"errorCode": "GENERAL"}, **{} if self.has("no allow") else {"Allow": "POST"}
        )

    def do_HEAD(self) -> None:
        self.answer(500 if self.has("head crashes") else 405, {}, Allow="POST")

    def do_OPTIONS(self) -> None:
        if self.has("no preflight"):
            return self.answer(405, {}, Allow="POST")
        allowed = "content-type, if-none-match" + (
            "" if self.has("cors headers") else ", authorization"
        )
        return self.answer(
            204,
            None,
            **{"Access-Control-Allow-Headers": allowed, "Access-Control-Allow-Methods": "POST"},
        )

    def do_CONFORM(self) -> None:
        self.answer(200 if self.has("any method") else 405, {}, Allow="POST")

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = None if path == FLAGS else unquote(path.removeprefix(FLAGS + "/"))
        if self.has("raw key") and key is not None:
            key = path.removeprefix(FLAGS + "/")
        if self.has("latin key") and key is not None:
            key = unquote(path.removeprefix(FLAGS + "/"), encoding="latin-1")
        if self.has("slash splits") and key and "/" in key:
            return self.answer(404, {"detail": "no such page"})
        try:
            self.require_credentials()
            if self.has("key first") and key is not None and key not in {*VALUES, "split"}:
                raise Refusal(404, "FLAG_NOT_FOUND", key=key)
            context = self.read_context(key, body)
            if key is None:
                return self.answer_all(context)
            return self.answer(200, self.evaluate(key, context))
        except Refusal as refusal:
            return self.answer(refusal.status, refusal.document, **refusal_headers(self, refusal))

    def require_credentials(self) -> None:
        given = self.headers.get("Authorization", "")
        if (not given and not self.has("open")) or (
            given and given != TOKEN and not self.has("any token")
        ):
            raise Refusal(401, "GENERAL")
        if self.has("limited") or self.has("limited without date"):
            self.server.count += 1
            if self.server.count > 8:
                raise Refusal(429, "GENERAL")

    def read_context(self, key: str | None, body: bytes) -> dict[str, Any]:
        named = {} if key is None or self.has("failure without key") else {"key": key}
        if "charset" in self.headers.get("Content-Type", "") and self.has("strict media type"):
            raise Refusal(415, "GENERAL")
        if len(body) > MAX_BODY_BYTES:
            crashes = self.has("large crashes") and b"[[" not in body
            deep = self.has("deep crashes") and b"[[" in body
            raise Refusal(500 if crashes or deep else 413, "GENERAL")
        try:
            text = body.decode("utf-8", "replace" if self.has("any bytes") else "strict")
            document = json.loads(text or "{}")
        except ValueError:
            status = 422 if self.has("broken 422") else 400
            code = "BROKEN" if self.has("own code") else "PARSE_ERROR"
            code = "GENERAL" if self.has("general code") else code
            raise Refusal(status, code, **named) from None
        if not body and self.has("empty crashes"):
            raise Refusal(500, "GENERAL")
        context = document.get("context", {})
        if context is None:
            if self.has("null crashes"):
                raise Refusal(500, "GENERAL")
            context = {}
        if not isinstance(context, dict):
            if self.has("any context"):
                return {}
            raise Refusal(
                400, "GENERAL" if self.has("general code") else "INVALID_CONTEXT", **named
            )
        if not isinstance(context.get("targetingKey", ""), str) and not self.has("any key type"):
            raise Refusal(400, "INVALID_CONTEXT", **named)
        if self.has("flat context") and any(isinstance(v, dict) for v in context.values()):
            raise Refusal(400, "INVALID_CONTEXT", **named)
        if self.has("ascii targeting key") and not str(context.get("targetingKey")).isascii():
            raise Refusal(400, "INVALID_CONTEXT", **named)
        return context

    def evaluate(self, key: str, context: dict[str, Any]) -> dict[str, Any]:
        if key == "split":
            if "targetingKey" not in context and not self.has("split without key"):
                raise Refusal(400, "TARGETING_KEY_MISSING", key=key)
            value = context.get("targetingKey") == "user-1"
        elif key in VALUES:
            value = VALUES[key]
        elif self.has("unknown is off"):
            value = False
        else:
            raise Refusal(404, "GENERAL" if self.has("plain 404") else "FLAG_NOT_FOUND", key=key)
        return self.spoil(
            {
                "key": key,
                "value": value,
                "variant": "a",
                "reason": "SPLIT" if key == "split" else "STATIC",
                "metadata": {"version": 7},
            }
        )

    def spoil(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return an evaluation with the defects that change its fields."""
        changes: dict[str, dict[str, Any]] = {
            "number for boolean": {"value": int(found["value"])}
            if isinstance(found["value"], bool)
            else {},
            "inverted": {"value": not found["value"]} if isinstance(found["value"], bool) else {},
            "other key": {"key": "other"},
            "null variant": {"variant": None},
            "null reason": {"reason": None},
            "own reason": {"reason": "BECAUSE"},
            "nested metadata": {"metadata": {"owner": {"team": "a"}}},
            "error code on 200": {"errorCode": "GENERAL"},
        }
        for defect, fields in changes.items():
            if self.has(defect):
                found = {**found, **fields}
        if self.has("racy"):
            self.server.count += 1
            found["variant"] = str(self.server.count)
        return found

    def answer_all(self, context: dict[str, Any]) -> None:
        keys = [*VALUES, *(["split"] if "targetingKey" in context else [])]
        flags = [self.evaluate(key, context) for key in keys]
        if self.has("bulk differs"):
            flags[0] = {**flags[0], "variant": "b"}
        if self.has("listed twice"):
            flags.append(flags[0])
        if self.has("entry without key"):
            flags.append({"value": True})
        if self.has("not listed"):
            flags = flags[1:]
        document: dict[str, Any] = {
            "flags": dict.fromkeys(keys) if self.has("flags object") else flags,
            "eventStreams": [self.describe_stream()],
            "metadata": {"tags": ["a"]} if self.has("bulk metadata") else {"version": 7},
        }
        etag = self.make_etag(flags)
        known = self.headers.get("If-None-Match", "")
        if self.is_known(known, etag):
            content = b"{}" if self.has("content on 304") else b""
            return self.answer(304, None, content, **{} if self.has("bare 304") else {"ETag": etag})
        status = 204 if self.has("bulk 204") else 200
        if "flagConfigEtag" in self.path and self.has("strict query"):
            status = 400
        headers = {} if self.has("no etag") else {"ETag": etag}
        return self.answer(status, document, **headers)

    def make_etag(self, flags: list[dict[str, Any]]) -> str:
        digest = sha256(b"" if self.has("one etag") else json.dumps(flags).encode()).hexdigest()[
            :12
        ]
        if self.has("new etag"):
            self.server.count += 1
            digest = str(self.server.count)
        return digest if self.has("unquoted") else f'"{digest}"'

    def is_known(self, known: str, etag: str) -> bool:
        if not known or self.has("never 304"):
            return False
        if self.has("always 304"):
            return True
        if known == "*":
            return not self.has("no star")
        tags = [known] if self.has("one tag") else [tag.strip() for tag in known.split(",")]
        if not self.has("strong comparison"):
            tags = [tag.removeprefix("W/") for tag in tags]
        return etag in tags

    def describe_stream(self) -> dict[str, Any]:
        if self.has("stream without url"):
            return {"type": "sse"}
        return {"type": "sse", "endpoint": {"requestUri": "/events"}, "inactivityDelaySec": 120}

    def answer_events(self) -> None:
        data = "changed" if self.has("plain event") else json.dumps({"type": "refetchEvaluation"})
        content = f"id: 1\nevent: message\ndata: {data}\n\n".encode()
        self.send_response(200)
        self.send_header(
            "Content-Type", "text/plain" if self.has("plain stream") else "text/event-stream"
        )
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer_configuration(self) -> None:
        kind = "number" if self.has("own type") else "boolean"
        document = {
            "name": "reference",
            "capabilities": {"flagEvaluation": {"supportedTypes": [kind]}},
        }
        if self.headers.get("If-None-Match") == '"1"' and not self.has("configuration anew"):
            return self.answer(304, None, ETag='"1"')
        return self.answer(200, document, ETag='"1"')

    def answer(self, status: int, document: Any, content: bytes = b"", **headers: str) -> None:
        if document is not None and status != 204:
            content = json.dumps(document).encode()
        self.send_response(status)
        kind = "text/html" if self.has("html") else "application/json"
        if document is not None:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if not self.has("no preflight"):
            self.send_header("Access-Control-Allow-Origin", "*")
        if not self.has("hidden etag"):
            self.send_header("Access-Control-Expose-Headers", "ETag")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def refusal_headers(handler: Handler, refusal: Refusal) -> dict[str, str]:
    if refusal.status == 401 and not handler.has("no challenge"):
        return {"WWW-Authenticate": "Bearer"}
    if refusal.status == 429 and not handler.has("limited without date"):
        return {"Retry-After": "1"}
    return {}


class Reference(ThreadingHTTPServer):
    """The server, with its defects."""

    daemon_threads = True
    request_queue_size = 64
    count = 0

    def __init__(self, defects: frozenset[str]) -> None:
        self.defects = defects
        super().__init__(("127.0.0.1", 0), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if "one at a time" in self.defects:
            HTTPServer.process_request(self, request, client_address)
        else:
            super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients of these tests close connections early."""


@contextmanager
def serve(*defects: str) -> Iterator[str]:
    """Run the server in a thread and yield its URL."""
    server = Reference(frozenset(defects))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.socket.close()
