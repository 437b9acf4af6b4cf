"""*Needs attention* with its count takes few queries, however much of all kinds waits."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from breakers.dead_letters.tests.heaps import heap
from controlplane.accounts.models.people import User
from controlplane.core.attention import services
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of
from controlplane.tests.e2e import world

MAX_QUERIES = 21


@pytest.fixture
def bad_night(transactional_db: None, settings: Any) -> Iterator[User]:
    resolve("/")  # Addresses are read in now, not within a transaction of the world's.
    with heap(settings) as letters:
        yield world.build(letters)


def test_page_with_items_of_many_kinds_takes_few_queries(bad_night: User) -> None:
    browser = browser_of(bad_night)
    browser.get("/attention/")
    services.clear_count()

    with CaptureQueriesContext(connection) as queries:
        page = browser.get("/attention/")

    assert page.status_code == 200
    kinds = {item.kind for item in services.read_all(db_now()).waiting}
    assert len(kinds) > 10
    assert len(queries) <= MAX_QUERIES


def test_no_item_is_listed_twice(bad_night: User) -> None:
    overview = services.read_all(db_now())

    subjects = [subject for item in overview.waiting for subject in item.subjects]
    titles = [(item.title, item.path) for item in overview.waiting]
    assert not overview.unread
    assert len(subjects) == len(set(subjects))
    assert len(titles) == len(set(titles))
