"""Runbooks of alerts."""

from controlplane.core import runbooks
from controlplane.core.console_urls import console_url
from slo.models import Alert


def find_runbook(alert: Alert) -> str:
    """Return the path or URL of an alert's runbook, empty if there is none.

    The one that the alert's facts, its SLO or its rule names, else the best match of our own.
    """
    if own := alert.facts.get("runbook"):
        return str(own)
    for source in (alert.slo, alert.threshold):
        if source is not None and source.runbook_url:
            return source.runbook_url
    name = alert.subject if alert.kind == Alert.Kind.BURN else alert.rule
    slug = runbooks.find_slug(
        service=alert.service, kind=alert.kind, name=name, subject=alert.subject
    )
    return runbooks.page_path(slug)


def runbook_url(alert: Alert) -> str:
    """Return the runbook for messages, as an absolute URL if the console's address is known."""
    found = find_runbook(alert)
    return (console_url(found) or found) if found.startswith("/") else found
