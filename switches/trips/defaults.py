"""What a machine may stop, as an installation begins: who decides for each kind of trigger.

Plain data, for the migration and for tests that empty the tables. Only the global switch is out of
every machine's reach whatever these rows say. The patterns for people are wide on purpose: a
memory leak that waits for somebody is better than a leak of data that nobody is asked about.
"""

from datetime import datetime
from typing import Any

# Rows for people come first: a source that names such a trigger never trips by itself.
POLICIES: tuple[dict[str, Any], ...] = (
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
        "scopes": ["global", "segment", "feature", "experiment"],
        "gate": "person",
        "response": "Stop everything at once",
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
        "scopes": ["global", "segment", "feature", "experiment"],
        "gate": "person",
        "response": "Escalate at once",
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
        "scopes": ["global", "segment", "feature", "experiment"],
        "gate": "person",
        "response": "Governance review",
    },
    {
        "trigger": "srm",
        "title": "Sample ratio mismatch or guardrail of an experiment",
        "sources": ["*"],
        "scopes": ["experiment"],
        "gate": "automatic",
        "response": "Stop that experiment only",
    },
    {
        "trigger": "provider-outage",
        "title": "Outage of an external provider",
        "sources": ["*"],
        "scopes": ["segment", "feature"],
        "gate": "automatic",
        "response": "Stop that segment or feature, or fall back",
    },
)


def install(apps: Any, now: datetime) -> None:
    """Write the rows that are missing; `apps` is Django's registry or a migration's."""
    policy = apps.get_model("switches", "TripPolicy")
    for position, row in enumerate(POLICIES):
        policy.objects.get_or_create(
            trigger=row["trigger"], defaults={**row, "position": position, "changed_at": now}
        )
