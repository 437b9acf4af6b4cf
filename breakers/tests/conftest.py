"""Fixtures of the tests of breakers."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role


@pytest.fixture
def viewer():
    return as_role("viewer")


@pytest.fixture
def operator():
    return as_role("operator")


@pytest.fixture
def admin():
    return as_role("admin")


@pytest.fixture
def now():
    return db_now()
