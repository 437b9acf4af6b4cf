"""Periodic tasks of accounts, which delete old rows."""

from functools import partial

from controlplane.core import ticks
from controlplane.core.retention import purge

from .authentication import retention_rules as rules
from .emergency_codes.retention_rules import EMERGENCY_CODES
from .tokens.retention_rules import TOKEN_CALLERS

purge_sessions = ticks.tick("sessions.purge", seconds=24 * 3600, queue="housekeeping")(
    partial(purge, [rules.SESSIONS, rules.OLD_SESSIONS, rules.CONFIRMATIONS])
)
ticks.tick("sign_ins.purge", seconds=24 * 3600, queue="housekeeping")(
    partial(purge, [*rules.SIGN_INS, rules.ADMIN_LOG, EMERGENCY_CODES, TOKEN_CALLERS])
)
