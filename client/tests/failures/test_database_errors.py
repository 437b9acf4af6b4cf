"""Database errors of lost connections, of drivers and of libraries that wrap them."""

import sqlite3

import psycopg
import pytest

from switchgear.failures.classification import FailureClass, classify
from switchgear.failures.error_labels import is_connection_error


class OperationalError(Exception):
    """An error like those of Django, SQLAlchemy (`orig`), psycopg2 (`pgcode`) and PyMySQL."""

    def __init__(self, *args, cause=None, **given):
        super().__init__(*args)
        self.__cause__ = cause
        self.__dict__.update(given)


def sqlite_error(statement):
    with pytest.raises(sqlite3.OperationalError) as raised:
        sqlite3.connect(":memory:").execute(statement)
    return raised.value


def locked(tmp_path):
    first, second = (sqlite3.connect(tmp_path / "one.db", timeout=0) for _ in range(2))
    first.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError) as raised:
        second.execute("BEGIN EXCLUSIVE")
    first.close()
    second.close()
    return raised.value


def refused():
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect("host=127.0.0.1 port=1 connect_timeout=2")
    return raised.value


NO_TABLE = sqlite_error("select * from nope")


@pytest.mark.parametrize(
    "error",
    [
        NO_TABLE,
        OperationalError("no such table: nope", cause=NO_TABLE),
        OperationalError("(sqlite3) no such table", orig=NO_TABLE),
        sqlite3.OperationalError("of sqlite, and no code"),
        psycopg.errors.DiskFull("no space"),
        OperationalError("no space", cause=psycopg.errors.DiskFull("no space")),
        OperationalError("undefined", pgcode="42P01"),
        OperationalError(1045, "access denied"),
    ],
)
def test_an_error_of_the_statement_is_persistent(error):
    assert not is_connection_error(error)
    assert classify(error) is FailureClass.PERSISTENT


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.AdminShutdown("going down"),
        psycopg.errors.ConnectionFailure("lost"),
        psycopg.InterfaceError("the connection is closed"),
        OperationalError("lost", cause=psycopg.OperationalError("the connection is lost")),
        OperationalError("lost", orig=psycopg.errors.AdminShutdown("going down")),
        OperationalError("going up", pgcode="57P03"),
        OperationalError(2006, "server has gone away"),
    ],
)
def test_a_lost_connection_is_transient(error):
    assert is_connection_error(error)
    assert classify(error) is FailureClass.TRANSIENT


def test_no_server_and_a_lock_are_transient(tmp_path):
    assert classify(refused()) is FailureClass.TRANSIENT
    assert classify(locked(tmp_path)) is FailureClass.TRANSIENT


def test_a_ring_of_wrapped_errors_ends():
    error = OperationalError("around")
    error.orig = error
    assert is_connection_error(error)
