"""Where to read what to do about an alert."""

from controlplane.core import runbooks
from controlplane.core.outbox.transports.identity import console_url
from slo.models import Alert


def find_runbook(alert: Alert) -> str:
    """The page or address of its runbook, empty if there is none: the one that its SLO, its
    rule or what it is about names, else what fits best of ours."""
    if own := alert.facts.get("runbook"):
        return str(own)
    for wanted in (alert.slo, alert.threshold):
        if wanted is not None and wanted.runbook_url:
            return wanted.runbook_url
    name = alert.subject if alert.kind == Alert.Kind.BURN else alert.rule
    slug = runbooks.about(service=alert.service, kind=alert.kind, name=name, subject=alert.subject)
    return runbooks.path(slug)


def runbook_url(alert: Alert) -> str:
    """The same for messages: whole, if somebody said where the console is."""
    found = find_runbook(alert)
    return (console_url(found) or found) if found.startswith("/") else found
