"""Restoring the test database while other sessions wait for its locks."""

import threading
import time

import pytest
from django.db import connection, transaction

from controlplane.core.threads import own_connection
from controlplane.tests import database

pytestmark = pytest.mark.django_db(transaction=True)
LOCK = "LOCK TABLE core_auditentry IN SHARE ROW EXCLUSIVE MODE"


def test_long_restore_that_blocks_others_is_not_ended(monkeypatch):
    initial, waiting = database.InitialState(), threading.Thread(target=wait_for_its_lock)
    changed_tables = database.InitialState._changed

    def take_long(state, cursor):
        cursor.execute(LOCK)
        waiting.start()
        time.sleep(1.5)
        return changed_tables(state, cursor)

    monkeypatch.setattr(database.InitialState, "_changed", take_long)

    initial.restore()

    waiting.join(10)
    assert not waiting.is_alive()


def wait_for_its_lock():
    with own_connection(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK)
