import pytest

from tests.telling.changing import Told


@pytest.fixture
def told():
    made = Told()
    yield made
    made.announcer.stop()
