"""WebAuthn registration and authentication; each challenge is kept in the session and used once."""

import json
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import auth
from django.core.exceptions import ValidationError
from fido2.utils import websafe_encode

from controlplane.accounts.models.people import User
from controlplane.core.errors import InvalidInput

MAX_ANSWER_LENGTH = 20_000  # Characters of a browser's answer.
REFUSED = "The passkey was not accepted. Try again, or use another method."


def build_registration_options(user: User) -> str:
    return json.dumps(auth.begin_registration(user, True), default=dict)


def verify_registration(text: str) -> dict[str, Any]:
    """Return the data to store of a new passkey; raise InvalidInput if its response is wrong."""
    answer = _parse_response(text)
    try:
        read = auth.parse_registration_response(answer)
        data = auth.complete_registration(answer)
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput({"credential": [REFUSED]}) from error
    if not data.is_user_verified():
        raise InvalidInput({"credential": ["The passkey must verify you by PIN or fingerprint."]})
    name = websafe_encode(read.raw_id)
    # Without unneeded fields that the browser sent.
    return {
        "id": name,
        "rawId": name,
        "type": "public-key",
        "clientExtensionResults": {},
        "response": {
            "clientDataJSON": websafe_encode(read.response.client_data),
            "attestationObject": websafe_encode(read.response.attestation_object),
        },
    }


def build_challenge(user: User | None) -> str:
    """Return a WebAuthn challenge, limited to `user`'s credentials if given."""
    return json.dumps(auth.begin_authentication(user), default=dict)


def verify_authentication(text: str, user: User | None) -> Authenticator:
    """Return the passkey (of `user`, if given) that signed the browser's response `text`.

    Raises :class:`InvalidInput` if the response is wrong.
    """
    answer = _parse_response(text)
    try:
        read = auth.parse_authentication_response(answer)
        owner = user or auth.extract_user_from_response(answer)
        passkey = auth.complete_authentication(owner, answer)
        # A passkey alone replaces both stages. The challenge may come from a second stage, which
        # doesn't require user verification.
        if user is None and not read.response.authenticator_data.is_user_verified():
            raise ValueError("the passkey did not verify its user")
        return passkey
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput({"credential": [REFUSED]}) from error
    finally:
        auth.clear_state()  # A challenge is used once, even if the response was wrong.


def _parse_response(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text) if len(text) <= MAX_ANSWER_LENGTH else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise InvalidInput({"credential": [REFUSED]})
    return answer
