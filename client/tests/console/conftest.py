import pytest

from tests.console.change_listeners import NotifiedStore


@pytest.fixture
def store():
    notified = NotifiedStore()
    yield notified
    notified.notifier.stop()
