"""WebAuthn challenges and the verification of their responses.

A challenge is stored in the session and answered once.
"""

import json
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import auth
from django.core.exceptions import ValidationError
from fido2.utils import websafe_encode
from fido2.webauthn import RegistrationResponse

from controlplane.accounts.models.people import User
from controlplane.core.errors import InvalidInput

MAX_ANSWER_LENGTH = 20_000  # Characters of a browser's answer.
REFUSED = "That passkey was not accepted. Try again, or use another way."


def to_register(user: User) -> str:
    """Return the WebAuthn registration options, as JSON."""
    return _as_json(auth.begin_registration(user, True))


def registered(text: str) -> dict[str, Any]:
    """The answer, checked, as it is stored; raises :class:`InvalidInput`."""
    answer = _read(text)
    try:
        read = auth.parse_registration_response(answer)
        data = auth.complete_registration(answer)
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput({"credential": [REFUSED]}) from error
    if not data.is_user_verified():
        raise InvalidInput({"credential": ["The passkey has to ask who you are: PIN or touch."]})
    return _kept(read)


def to_show(user: User | None) -> str:
    """Return a WebAuthn challenge, limited to `user`'s credentials if given."""
    return _as_json(auth.begin_authentication(user))


def shown(text: str, user: User | None) -> Authenticator:
    """Return the passkey that signed the response; with `user`, it must be theirs.

    Raises :class:`InvalidInput`.
    """
    answer = _read(text)
    try:
        read = auth.parse_authentication_response(answer)
        whose = user or auth.extract_user_from_response(answer)
        found = auth.complete_authentication(whose, answer)
        # A passkey alone replaces both steps. The challenge may come from a second step, which
        # doesn't require user verification.
        if user is None and not read.response.authenticator_data.is_user_verified():
            raise ValueError("the passkey did not ask who holds it")
        return found
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput({"credential": [REFUSED]}) from error
    finally:
        auth.clear_state()  # A challenge is used once, even if the response was wrong.


def _kept(read: RegistrationResponse) -> dict[str, Any]:
    """Return the fields that are checked later, rebuilt: a browser may send anything besides."""
    name = websafe_encode(read.raw_id)
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


def _as_json(options: dict[str, Any]) -> str:
    return json.dumps(options, default=dict)


def _read(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text) if len(text) <= MAX_ANSWER_LENGTH else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise InvalidInput({"credential": [REFUSED]})
    return answer
