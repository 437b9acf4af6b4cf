"""The environment variable of the Opsgenie transport."""

from collections.abc import Mapping
from typing import Any

from controlplane.core.environment_variables import check_url

VARIABLES = ("OPSGENIE_API_URL",)


def read(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the setting `OPSGENIE_API_URL`; if empty, Opsgenie's URL of the region is used."""
    url = variables.get("OPSGENIE_API_URL", "").rstrip("/")
    return {"OPSGENIE_API_URL": url and check_url(url, "OPSGENIE_API_URL", {"http", "https"})}
