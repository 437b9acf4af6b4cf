"""Fixtures of the tests of patterns."""

import pytest

from switchgear.testing import Console


@pytest.fixture
def console():
    return Console()


@pytest.fixture
def gear(console):
    return console.client(service="core")
