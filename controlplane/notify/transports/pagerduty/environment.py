"""The environment variable of the PagerDuty transport."""

from collections.abc import Mapping
from typing import Any

from controlplane.core.environment_variables import check_url

VARIABLES = ("PAGERDUTY_API_URL",)


def read(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the setting `PAGERDUTY_API_URL`; if empty, PagerDuty's URL of the region is used."""
    url = variables.get("PAGERDUTY_API_URL", "").rstrip("/")
    return {"PAGERDUTY_API_URL": url and check_url(url, "PAGERDUTY_API_URL", {"http", "https"})}
