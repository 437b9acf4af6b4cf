"""What core itself puts into the palette."""

from collections.abc import Sequence

from django.urls import reverse

from controlplane.core.runbooks import shelf

from . import matching
from .registry import ACTION, FEW, Asked, Command, Entry, commands, things

commands(
    20,
    Command(
        "Needs attention",
        "attention",
        "attention_page",
        keys="g n",
        words="waits inbox todo overdue",
    ),
    Command(
        "Approvals", "approvals", "approvals_page", keys="g p", words="approve review sign second"
    ),
)
commands(
    60,
    Command("Runbooks", "book", "runbooks_page", keys="g h", words="help how what to do"),
    Command("Audit", "audit", "audit_page", keys="g a", words="trail who did history log"),
    Command("Jobs", "jobs", "jobs_page", words="background work"),
    Command("Targets", "target", "targets_page", words="who is told escalation rotation slack"),
    Command("Deliveries", "delivery", "deliveries_page", words="messages slack e-mail webhook"),
)
commands(
    85,
    Command("People", "person", "people_page", words="users accounts roles who", scope="admin"),
    Command("Tokens", "token", "tokens_page", words="api keys programs scopes mine"),
    Command(
        "Add a person…",
        "person",
        "person_new",
        kind=ACTION,
        in_dialog=True,
        words="new user account invite",
        scope="admin",
    ),
    Command(
        "Make a token…",
        "token",
        "token_new",
        kind=ACTION,
        in_dialog=True,
        words="new create api key",
        scope="admin",
    ),
)
commands(
    90,
    Command("Preferences", "settings", "preferences", words="time zone name password me"),
    Command(
        "Security",
        "glass",
        "security_page",
        words="second factor app passkey totp mfa recovery codes me",
    ),
    Command("Sessions", "monitor", "sessions_page", words="signed in devices sign out end me"),
    Command("Administration", "person", "admin:index", words="admin django", scope="admin"),
)
commands(
    95,
    Command(
        "Show times in UTC, or in my zone",
        "clock",
        keys="u",
        kind=ACTION,
        runs="times",
        words="utc local zone",
    ),
    Command(
        "Keyboard shortcuts", "keyboard", keys="?", kind=ACTION, runs="shortcuts", words="help keys"
    ),
)


@things(60)
def runbooks(asked: Asked) -> Sequence[Entry]:
    """Runbooks by their titles and what one sees."""
    found = []
    for one in shelf.every():
        weight = matching.weight(asked.words, one.title, f"{one.summary} {' '.join(one.symptoms)}")
        if weight:
            path = reverse("runbook_page", args=[one.slug])
            found.append(
                Entry("Runbook", one.title, "book", path, one.summary, weight=weight, keeps=True)
            )
    return sorted(found, key=lambda one: -one.weight)[:FEW]
