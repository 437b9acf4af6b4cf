"""How long core's tables are kept: the rules that stand beside no other code, and what lasts."""

from dataclasses import replace
from datetime import timedelta

# Each of these registers rules beside what it does.
from .gates import services as _gates  # noqa: F401
from .idempotency import services as _idempotency  # noqa: F401
from .instances import services as _instances  # noqa: F401
from .jobs import retention_rules as _jobs
from .retention.rules import Rule, lasting, rule
from .trip_requests import services as _trip_requests  # noqa: F401

DAY = timedelta(days=1)

MESSAGES = rule(
    Rule(
        name="messages",
        model="core.OutboxMessage",
        parts=("core.Attempt",),
        kept=30 * DAY,
        where="finished_at < %(before)s AND "
        "(state IN ('sent', 'superseded') OR discarded_at IS NOT NULL)",
        since="finished_at",
        bounds=(8, 400),
        tick="outbox.purge",
        why="What was sent to whom, for as long as somebody may ask; weekly messages among it.",
        but="What failed stays until somebody deals with it.",
    )
)
# A thread is found by the subject of messages that are still to come. Whatever still runs is told
# of weekly, so its messages are younger than they are kept.
THREADS = rule(
    Rule(
        name="threads",
        model="core.Thread",
        kept=400 * DAY,
        where="created_at < %(before)s AND NOT EXISTS (SELECT FROM core_outboxmessage m"
        " WHERE m.destination = it.destination AND m.subject = it.subject)",
        since="created_at",
        bounds=(90, 3650),
        tick="outbox.purge",
        why="Which message in Slack is about what, to update it in place.",
        but="Those with messages in the outbox.",
    )
)
PACES = rule(
    Rule(
        name="paces",
        model="core.Pace",
        kept=7 * DAY,
        where="greatest(paced_until, keep_away_until) < %(before)s",
        since="greatest(paced_until, keep_away_until)",
        tick="outbox.purge",
        why="How fast a destination may be sent to; one unused for long begins anew.",
    )
)
ESCALATIONS = rule(
    Rule(
        name="escalations",
        model="core.Escalation",
        kept=400 * DAY,
        where="closed_at < %(before)s",
        since="opened_at",
        bounds=(90, 3650),
        tick="escalation.purge",
        why="Who was called and who acknowledged, for postmortems.",
        but="What is open.",
    )
)
SESSIONS = rule(
    Rule(
        name="sessions",
        model="core.BrowserSession",
        kept=timedelta(0),
        where="expire_date < %(before)s",
        since="started_at",
        order="expire_date",
        tick="sessions.purge",
        why="A session that has ended is of no use; the audit trail has its beginning and end.",
    )
)
OLD_SESSIONS = rule(
    replace(SESSIONS, name="sessions-before", model="sessions.Session", since="expire_date")
)
CONFIRMATIONS = rule(
    Rule(
        name="e-mail-confirmations",
        model="account.EmailConfirmation",
        kept=7 * DAY,
        where="created < %(before)s",
        since="created",
        tick="sessions.purge",
        why="Keys of links in e-mails, which are valid for days at most.",
    )
)
_SIGN_INS = Rule(
    name="sign-ins",
    model="axes.AccessAttempt",
    parts=("axes.AccessAttemptExpiration",),
    kept=30 * DAY,
    where="attempt_time < %(before)s",
    since="attempt_time",
    bounds=(1, 400),
    tick="sign_ins.purge",
    why="Names and addresses of who tried to sign in; lock-outs are over long before.",
)
SIGN_INS = (
    rule(_SIGN_INS),
    rule(replace(_SIGN_INS, name="sign-ins-failed", model="axes.AccessFailureLog", parts=())),
    rule(replace(_SIGN_INS, name="sign-ins-done", model="axes.AccessLog", parts=())),
)
ADMIN_LOG = rule(
    Rule(
        name="admin-log",
        model="admin.LogEntry",
        kept=400 * DAY,
        where="action_time < %(before)s",
        since="action_time",
        bounds=(30, 3650),
        tick="sign_ins.purge",
        why="What was changed in Django's admin; the audit trail says the same for ever.",
    )
)

for _rule in _jobs.rules():
    rule(_rule)

lasting("Proof of who did what; nothing of it can be deleted.", "core.AuditEntry")
lasting("Who approved or reviewed what belongs to the proof.", "core.Approval")
lasting("People are deactivated, not deleted: the trail names them.", "core.User")
lasting("A token that has ended is shown as such; the trail names it.", "core.Token")
lasting(
    "Set by people, until they take it away.",
    "core.Target",
    "core.OnCallMember",
    "core.EscalationStep",
    "core.Route",
    "account.EmailAddress",
    "mfa.Authenticator",
    "socialaccount.SocialAccount",
    "socialaccount.SocialApp",
    "socialaccount.SocialToken",
)
lasting(
    "One row, or one for each thing that runs; it goes with it.",
    "core.AuditRound",
    "core.Credentials",
    "core.Degradation",
    "core.Gate",
    "core.Hold",
    "core.Tick",
    "core.Heartbeat",
)
lasting(
    "Made by Django itself, with its tables.",
    "auth.Permission",
    "auth.Group",
    "auth.Group_permissions",
    "contenttypes.ContentType",
)
