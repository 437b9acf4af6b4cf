"""Rows that a test class arranges once outlive the restore after a transactional test."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

from switches.models import Switch
from switches.tests.browsers import engaged


@pytest.mark.django_db(transaction=True)
def test_transactional():
    engaged("feature:before")


@pytest.mark.django_db
class TestArranged:
    @pytest.fixture(scope="class", autouse=True)
    def arranged(self, class_db):
        engaged("feature:once")

    def test_first(self):
        assert [switch.pk for switch in Switch.objects.all()] == ["feature:once"]

    def test_second(self):
        assert [switch.pk for switch in Switch.objects.all()] == ["feature:once"]
"""
TRANSACTIONAL_FIRST = """
import pytest


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection_modifyitems(items):
    yield
    items.sort(key=lambda item: item.name != "test_transactional")
"""


@pytest.mark.faults
def test_class_that_follows_a_transactional_test_keeps_what_it_arranged():
    """A worker that steals tests from another may run a class after a transactional test."""
    with TemporaryDirectory(dir=Path(__file__).parent) as folder:
        Path(folder, "test_order.py").write_text(TESTS)
        Path(folder, "conftest.py").write_text(TRANSACTIONAL_FIRST)

        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "", folder],
            cwd=ROOT,
            env={**os.environ, "TOX_PARALLEL_ENV": "isolation"},  # A database of its own.
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert ran.returncode == 0, ran.stdout + ran.stderr
