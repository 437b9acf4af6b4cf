"""The OpenAPI document for tests that compare it with answers."""

import functools
import json
from typing import Any

from controlplane.openapi import document


@functools.cache
def api_document() -> dict[str, Any]:
    """Return the document, built once per process, since that takes a second; only to be read."""
    read: dict[str, Any] = json.loads(document.get_representation(document.JSON).plain)
    return read
