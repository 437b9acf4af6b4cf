"""Other sessions of the test database: one that holds a lock, and those waiting for it."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from controlplane.core.threads import OWNER_NAME
from controlplane.database.backend.base import DatabaseWrapper

WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@contextmanager
def another_session(
    name: str = OWNER_NAME,
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Open a connection of its own in a separate transaction.

    By default it keeps its locks; under another name it is terminated if others wait for it.
    """
    given = connection.settings_dict
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD"}
    parts = {libpq: given[django] for libpq, django in names.items()}
    conninfo = make_conninfo(**parts, host=given["HOST"], port=given["PORT"])
    with psycopg.connect(conninfo, application_name=name) as session:
        yield session
        with suppress(psycopg.OperationalError):  # It was ended.
            session.rollback()


@contextmanager
def terminated_at(
    statement: str, times: int, meanwhile: Callable[[], object] = lambda: None
) -> Iterator[list[int]]:
    """Terminate this thread's session before each matching statement, up to `times` times.

    Calls `meanwhile` after each termination. Yields the process ids of the terminated sessions.
    """
    ended: list[int] = []

    def terminate(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if len(ended) < times and re.search(statement, sql):
            ended.append(_terminate())
            meanwhile()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(terminate):
        yield ended


@contextmanager
def terminated_at_commit(times: int = 1, *, is_after: bool = False) -> Iterator[list[int]]:
    """Terminate this thread's session before its next commits, or after them; see above."""
    ended: list[int] = []
    commit = DatabaseWrapper._commit  # type: ignore[attr-defined]

    def terminate(wrapper: DatabaseWrapper) -> None:
        is_ended = len(ended) < times
        if is_ended and not is_after:
            ended.append(_terminate())
        commit(wrapper)
        if is_ended and is_after:
            ended.append(_terminate())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseWrapper, "_commit", terminate)
        yield ended
    connection.close()


def _terminate() -> int:
    """Terminate this thread's session; return its process id."""
    pid: int = connection.connection.info.backend_pid
    with another_session() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    return pid


def until_waiting(sessions: int) -> None:
    """Return once so many sessions wait for a lock."""
    deadline = time.monotonic() + 4
    while _waiting() < sessions:
        assert time.monotonic() < deadline, "they don't wait"
        time.sleep(0.01)


def _waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # Within a transaction it is kept else.
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])
