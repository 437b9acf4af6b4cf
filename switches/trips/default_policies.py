"""Trip policies of a new installation, for the migration and for tests.

Policies that ask a person have wide patterns: a needless question about a memory leak is better
than a data leak that nobody was asked about.
"""

from datetime import datetime
from typing import Any

from switches.scopes import SCOPES

# Rows for people come first, so a source that matches one never trips automatically.
_POLICIES: tuple[dict[str, Any], ...] = (
    {
        "trigger": "security-incident",
        "title": "Security incident",
        "sources": [
            "*security*",
            "*databreach*",
            "*securitybreach*",
            "*intrusion*",
            "*intruder*",
            "*compromis*",
            "*unauthori*",
            "*malware*",
            "*ransomware*",
            "*phishing*",
        ],
        "gate": "person",
        "response": "Stop everything immediately",
    },
    {
        "trigger": "data-leak",
        "title": "Suspected data leak",
        "sources": [
            "*leak*",
            "*exfiltrat*",
            "*exposed*",
            "*disclos*",
            "*data*loss*",
            "*privacy*",
            "*personal*data*",
            "*gdpr*",
        ],
        "gate": "person",
        "response": "Escalate immediately",
    },
    {
        "trigger": "policy-violation",
        "title": "Reported policy violation",
        "sources": [
            "policy*",
            "*policy*violat*",
            "*violat*policy*",
            "*compliance*",
            "*governance*",
        ],
        "gate": "person",
        "response": "Governance review",
    },
    {
        "trigger": "srm",
        "title": "Sample ratio mismatch or guardrail of an experiment",
        "sources": ["*"],
        "gate": "automatic",
        "response": "Stop that experiment only",
    },
    {
        "trigger": "provider-outage",
        "title": "Outage of an external provider",
        "sources": ["*"],
        "gate": "automatic",
        "response": "Stop that segment or feature, or fall back",
    },
)


def install(apps: Any, now: datetime) -> None:
    """Create the missing default policies; `apps` is Django's app registry or a migration's."""
    policy = apps.get_model("switches", "TripPolicy")
    for position, row in enumerate(default_policies()):
        policy.objects.get_or_create(
            trigger=row["trigger"], defaults={**row, "position": position, "changed_at": now}
        )


def default_policies() -> list[dict[str, Any]]:
    return [
        {
            **row,
            "scopes": [
                scope.name
                for scope in SCOPES.values()
                if row["gate"] == "person" or row["trigger"] in scope.trip_triggers
            ],
        }
        for row in _POLICIES
    ]
