"""Sessions that take a lock and then idle, like those of a frozen process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.sessions import another_session
from controlplane.database.lock_holders import ENDED, RECORDER

PUBLICATION = "SELECT FROM switches_publication FOR UPDATE"


@contextmanager
def holding(*statements: str, name: str = "frozen") -> Iterator[psycopg.Connection]:
    """Open a session of our role that has run these statements in a transaction, and stays idle."""
    with another_session(name) as session:
        for statement in statements:
            session.execute(statement)
        yield session


@contextmanager
def waiting(first: str, then: str) -> Iterator[threading.Thread]:
    """A session that holds the first lock and waits for the second: a blocked blocker."""
    with holding(first, name="blocked") as session:
        thread = threading.Thread(target=_execute, args=(session, then))
        thread.start()
        yield thread
        thread.join(10)


def _execute(session: psycopg.Connection, statement: str) -> None:
    with suppress(psycopg.errors.AdminShutdown):
        session.execute(statement)
        session.rollback()


def is_ended(session: psycopg.Connection) -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.OperationalError:
        return True
    return False


def recorded(count: int = 1) -> list[AuditEntry]:
    """Return the audit entries of terminated sessions; a thread of its own writes them."""
    give_up = time.monotonic() + 10
    while len(found := list(AuditEntry.objects.filter(action=ENDED))) < count:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    for thread in threading.enumerate():
        if thread.name == RECORDER:
            thread.join(10)
    return found
