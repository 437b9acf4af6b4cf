"""Fixtures of the tests of dead letters."""

import pytest

from .heaps import heap


@pytest.fixture
def letters(settings):
    with heap(settings) as given:
        yield given
