"""A small OpenID provider over real HTTP: discovery, keys, tokens and userinfo, and its faults."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "switchgear", "a-secret-of-the-client"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class FakeProvider:
    """A local OpenID provider.

    `claims` override those of each ID token; `person` is the userinfo response. `faults` may have:
    `token` (a text in place of the signed one), `key`, `kid`, `algorithm`, `issuer` (of the
    metadata), `redirect` (target of the token endpoint), `hang` (seconds).
    """

    def __init__(self) -> None:
        self.key = new_key()
        self.claims: dict[str, Any] = {}
        self.person: dict[str, Any] = {"sub": "u-1", "preferred_username": "kim"}
        self.faults: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def authorized(self, location: str) -> tuple[str, str]:
        """Consent as the person; return the state and the code for a browser's request."""
        parameters = {
            name: values[0] for name, values in parse_qs(urlsplit(location).query).items()
        }
        code = secrets.token_urlsafe(16)
        self.codes[code] = parameters
        return parameters["state"], code

    def redeemed(self, given: dict[str, str]) -> dict[str, Any] | None:
        grant = self.codes.pop(given.get("code", ""), None)
        if grant is None or given.get("client_secret") != SECRET:
            return None
        verifier = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if challenge != grant.get("code_challenge"):
            return None
        return {
            "access_token": "an-access-token",
            "token_type": "Bearer",
            "id_token": self.faults.get("token") or self.token(grant),
        }

    def token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": self.person["sub"], "iat": now,
            "exp": now + 300, "nonce": asked.get("nonce"), "auth_time": now, **self.claims,
        }  # fmt: skip
        return jwt.encode(
            {name: value for name, value in claims.items() if value is not None},
            self.faults.get("key", self.key),
            algorithm=self.faults.get("algorithm", "RS256"),
            headers={"kid": self.faults.get("kid", "one")},
        )

    def keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.faults.get("issuer", self.issuer),
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }


def _handler(provider: FakeProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            time.sleep(provider.faults.get("hang", 0))
            answers = {
                "/.well-known/openid-configuration": provider.description,
                "/keys": provider.keys,
                "/userinfo": lambda: provider.person,
            }
            make = answers.get(self.path)
            self._answer(200 if make else 404, make() if make else {})

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if "redirect" in provider.faults:
                return self._answer(307, {}, Location=provider.faults["redirect"])
            given = {name: values[0] for name, values in parse_qs(body).items()}
            found = provider.redeemed(given)
            return self._answer(200 if found else 400, found or {"error": "invalid_grant"})

        def _answer(self, status: int, body: dict[str, Any], **headers: str) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            pass

    return Handler


@contextmanager
def running() -> Iterator[FakeProvider]:
    provider = FakeProvider()
    thread = threading.Thread(target=provider.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.server.shutdown()
        provider.server.server_close()
        thread.join()
