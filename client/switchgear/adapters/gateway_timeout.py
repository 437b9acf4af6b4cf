"""The answer to a request whose caller no longer waits."""

import json
from http import HTTPStatus

STATUS = HTTPStatus.GATEWAY_TIMEOUT.value
LINE = f"{STATUS} {HTTPStatus.GATEWAY_TIMEOUT.phrase}"
CONTENT_TYPE = "application/problem+json"
BODY = json.dumps(
    {
        "type": "about:blank",
        "title": HTTPStatus.GATEWAY_TIMEOUT.phrase,
        "status": STATUS,
        "detail": "The time that the caller gave was over before the work began.",
    }
).encode()
