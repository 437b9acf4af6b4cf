"""Retention rules of sessions, sign-in attempts, e-mail confirmations and accounts."""

from dataclasses import replace
from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

SESSIONS = RetentionRule(
    name="sessions",
    model="core.BrowserSession",
    period=timedelta(0),
    where="expire_date < %(before)s",
    since="started_at",
    order="expire_date",
    tick="sessions.purge",
    why="Ended sessions aren't needed; the audit trail records when they began and ended.",
)
OLD_SESSIONS = replace(
    SESSIONS, name="sessions-before", model="sessions.Session", since="expire_date"
)
CONFIRMATIONS = RetentionRule(
    name="e-mail-confirmations",
    model="account.EmailConfirmation",
    period=timedelta(days=7),
    since="created",
    tick="sessions.purge",
    why="Keys of links in e-mails, which are valid for days at most.",
)
_ATTEMPTS = RetentionRule(
    name="sign-ins",
    model="axes.AccessAttempt",
    parts=("axes.AccessAttemptExpiration",),
    period=timedelta(days=30),
    since="attempt_time",
    bounds=(1, 400),
    tick="sign_ins.purge",
    why="Names and addresses of sign-in attempts; lockouts end much earlier.",
)
SIGN_INS = (
    _ATTEMPTS,
    replace(_ATTEMPTS, name="sign-ins-failed", model="axes.AccessFailureLog", parts=()),
    replace(_ATTEMPTS, name="sign-ins-done", model="axes.AccessLog", parts=()),
)
ADMIN_LOG = RetentionRule(
    name="admin-log",
    model="admin.LogEntry",
    period=timedelta(days=400),
    since="action_time",
    bounds=(30, 3650),
    tick="sign_ins.purge",
    why="Changes made in Django's admin; the audit trail records them, too.",
)

RETENTION_RULES.register(SESSIONS, OLD_SESSIONS, CONFIRMATIONS, *SIGN_INS, ADMIN_LOG)

keep_permanently(
    "People are deactivated, not deleted, because the audit trail names them.", "core.User"
)
keep_permanently("Ended tokens stay listed, because the audit trail names them.", "core.Token")
keep_permanently("One row.", "core.Credentials")
keep_permanently(
    "Set and removed by people.",
    "account.EmailAddress",
    "mfa.Authenticator",
    "socialaccount.SocialAccount",
    "socialaccount.SocialApp",
    "socialaccount.SocialToken",
)
