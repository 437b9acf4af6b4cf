"""Two installations: a bad night with data in every state, and the first day."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import resolve
from playwright.sync_api import Browser

from breakers.dead_letters.tests.heaps import heap
from controlplane.accounts.models.people import User
from controlplane.core.http.tests.callers import person
from controlplane.tests.browser import Desks
from controlplane.tests.e2e import world


@pytest.fixture
def night(transactional_db: None, settings: Any) -> Iterator[User]:
    """A person who can see everything, with data in every table."""
    resolve("/")  # Addresses are read in now, not within a transaction of the world's.
    with heap(settings) as letters:
        yield world.build(letters)


@pytest.fixture
def first_day(transactional_db: None, settings: Any) -> Iterator[User]:
    with heap(settings):
        yield person("admin", "ada")


@pytest.fixture
def rounds(chromium: Browser, live_server: Any) -> Iterator[Desks]:
    """Windows that navigate quickly.

    Leaving a page aborts its pending requests; the browser's complaints about that are ignored.
    """
    opened = Desks(chromium, live_server.url)
    yield opened
    opened.close()
