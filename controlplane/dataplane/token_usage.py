"""Records when tokens were last used: collected in memory, written in batches, best effort."""

import asyncio

import structlog

from controlplane.core.timeouts import wait_at_most

from .config import Config
from .postgres import database
from .state import State

WRITE_SECONDS = 10.0

log = structlog.get_logger(__name__)


async def note_uses(config: Config, state: State) -> None:
    """Write used tokens every `usage_seconds`, in one UPDATE, until canceled.

    On a connection of its own, because a locked row must not delay a poll.
    """
    while True:
        await asyncio.sleep(config.usage_seconds)
        used, state.used_tokens = state.used_tokens, set()
        if not used or not state.database_reachable:
            continue
        try:
            await wait_at_most(WRITE_SECONDS, _write(config, used))
        except Exception as error:
            log.info("dataplane.token_use_lost", kind=type(error).__name__, error=str(error))


async def _write(config: Config, token_ids: set[int]) -> None:
    connection = await database.connect(config)
    try:
        await database.note_use(connection, token_ids, every=config.usage_seconds / 2)
    finally:
        connection.pgconn.finish()
