"""A reusable connection outside the pool."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from controlplane.core.threads import ReusedConnection
from controlplane.dataplane.tests.lines import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def database() -> Iterator[ReusedConnection]:
    made = ReusedConnection()
    yield made
    made.close()


def use(database: ReusedConnection) -> int:
    with database.use():
        return backend()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return int(pid)


def test_the_next_use_has_the_same_connection(database: ReusedConnection) -> None:
    with ThreadPoolExecutor() as threads:
        first = threads.submit(use, database).result()
    with ThreadPoolExecutor() as threads:
        second = threads.submit(use, database).result()

    assert second == first
    assert second != backend()


def test_a_connection_that_postgresql_ended_is_replaced(database: ReusedConnection) -> None:
    with ThreadPoolExecutor() as threads:
        first = threads.submit(use, database).result()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
            assert cursor.fetchone() == (True,)

        assert threads.submit(use, database).result() != first


def test_a_connection_is_closed_after_an_error(database: ReusedConnection) -> None:
    def fail() -> None:
        use(database)
        with database.use():
            failed.append(backend())
            raise ZeroDivisionError

    failed: list[int] = []
    with ThreadPoolExecutor() as threads:
        with pytest.raises(ZeroDivisionError):
            threads.submit(fail).result()

        assert threads.submit(use, database).result() not in failed


def test_concurrent_uses_have_a_connection_each_and_one_is_kept(database: ReusedConnection) -> None:
    def meet() -> int:
        with database.use():
            both.wait()
            return backend()

    both = Barrier(2, timeout=5)
    with ThreadPoolExecutor() as threads:
        results = {future.result() for future in [threads.submit(meet) for _ in range(2)]}
        later = threads.submit(use, database).result()

    assert len(results) == 2
    assert later in results
    wait_until(lambda: running_backends(results) == {later}, 5)  # A backend takes time to end.


def running_backends(pids: set[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s)", [list(pids)])
        return {pid for (pid,) in cursor.fetchall()}
