"""Fixtures of the tests of switches."""

import pytest

from controlplane.core.http.tests.callers import as_role, person


@pytest.fixture
def operator():
    return as_role("operator")


@pytest.fixture
def kim():
    return person("operator", "kim")
