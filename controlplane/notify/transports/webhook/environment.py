"""The environment variable of the webhook transport."""

from collections.abc import Mapping
from typing import Any

from controlplane.core.environment_variables import read_networks

VARIABLES = ("WEBHOOK_ALLOW",)


def read(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the Django setting `WEBHOOK_ALLOW`: private networks that webhooks may call."""
    return {"WEBHOOK_ALLOW": read_networks(variables, "WEBHOOK_ALLOW")}
