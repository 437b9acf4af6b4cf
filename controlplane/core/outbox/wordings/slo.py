"""What is told of alerts: rules of SLOs and of figures that fire, and that they are over.

Facts: `said` (a sentence), `rule`, `about` (of what), `service`, `owner`, `runbook`, `to_do`, `at`;
of many `count`, `list`, `first_said`; and `path` of the alert's page.
"""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

_WHOM = (
    ("Rule", "rule"),
    ("Service", "service"),
    ("Since", "at"),
    ("What to do", "to_do"),
    ("Budget left", "budget_left"),
    ("It lasts until", "exhausts_at"),
    ("Owner", "owner"),
    ("Runbook", "runbook"),
)

SLO: Mapping[str, Wording] = {
    "slo.alert": Wording("🔥", "{said}", _WHOM, severity="warning", buttons=("acknowledge",)),
    "slo.alert_over": Wording(
        "🌤️", "Over: {said}", (("It was so since", "since_at"), ("Why it is over", "why"))
    ),
    "slo.alerts": Wording(
        "🔥",
        "Alerts: {count}",
        (("They are", "list"), ("The first of them", "first_said")),
        severity="warning",
    ),
    "slo.alerts_over": Wording("🌤️", "Alerts that are over: {count}", (("They were", "list"),)),
    "slo.alerts_missed": Wording(
        "🕰️",
        "Alerts that came and went while nobody judged: {count}",
        (("They were", "list"), ("The first of them", "first_said")),
    ),
}
