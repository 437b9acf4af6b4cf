"""A security key in the tests of entry: makes a passkey, shows it with or without its PIN."""

import hashlib
import os
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

HOST = "testserver"
TOUCHED, VERIFIED, MADE = 0x01, 0x04, 0x40


class SecurityKey:
    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = os.urandom(16)
        self.handle = ""

    def make(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a page that adds a passkey."""
        options = question["publicKey"]
        self.handle = options["user"]["id"]
        public = ES256.from_cryptography_key(self.key.public_key())
        credential = AttestedCredentialData.create(Aaguid.NONE, self.id, public)
        data = _data(TOUCHED | VERIFIED | MADE, credential)
        return self._answer(
            clientDataJSON=_collected("webauthn.create", options),
            attestationObject=AttestationObject.create("none", data, {}),
        )

    def show(self, question: dict[str, Any], *, verified: bool = True) -> dict[str, Any]:
        """Return the response to a passkey request; without a PIN if not `verified`."""
        collected = _collected("webauthn.get", question["publicKey"])
        data = _data(TOUCHED | VERIFIED if verified else TOUCHED)
        signature = self.key.sign(bytes(data) + collected.hash, ec.ECDSA(hashes.SHA256()))
        answer = self._answer(clientDataJSON=collected, authenticatorData=data, signature=signature)
        answer["response"]["userHandle"] = self.handle
        return answer

    def _answer(self, **parts: bytes) -> dict[str, Any]:
        return {
            "id": websafe_encode(self.id),
            "rawId": websafe_encode(self.id),
            "type": "public-key",
            "clientExtensionResults": {"credProps": {"rk": True}},
            "response": {name: websafe_encode(part) for name, part in parts.items()},
        }


def _data(flags: int, credential: bytes = b"") -> AuthenticatorData:
    return AuthenticatorData.create(hashlib.sha256(HOST.encode()).digest(), flags, 0, credential)


def _collected(kind: str, asked: dict[str, Any]) -> CollectedClientData:
    return CollectedClientData.create(kind, asked["challenge"], f"https://{HOST}")
