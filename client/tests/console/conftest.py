import pytest

from tests.console.change_listeners import NotifiedStore


@pytest.fixture
def store():
    made = NotifiedStore()
    yield made
    made.notifier.stop()
