"""Fixtures of the tests of dead letters."""

import pytest

from controlplane.core.http.tests.callers import as_role

from .heaps import heap


@pytest.fixture
def letters(settings):
    with heap(settings) as given:
        yield given


@pytest.fixture
def viewer():
    return as_role("viewer")


@pytest.fixture
def operator():
    return as_role("operator")


@pytest.fixture
def admin():
    return as_role("admin")
