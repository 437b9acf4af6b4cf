"""A transaction with a deadline: it commits in time or changes nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from psycopg.pq import TransactionStatus

from controlplane.core import deadline
from controlplane.core.errors import Unavailable


@contextmanager
def end_by(ends: float) -> Iterator[None]:
    """Limit the statements of the block to end by `ends`, on the monotonic clock.

    Raises :class:`Unavailable`, or the database error of a canceled statement.
    """
    with deadline.limit_writes(ends), connection.execute_wrapper(_Hurried(ends)):
        yield


class _Hurried:
    """Execute wrapper that sets the remaining time as each statement's timeout."""

    def __init__(self, ends: float) -> None:
        self._ends = ends

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: Any,
        params: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        raw = context["connection"].connection
        if raw is not None and raw.info.transaction_status == TransactionStatus.INTRANS:
            left = self._ends - time.monotonic()
            if left <= 0:
                raise Unavailable("This took too long; nothing was changed.")
            with context["connection"].wrap_database_errors:
                raw.execute(f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}")
        return execute(sql, params, many, context)
