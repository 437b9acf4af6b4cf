"""*Needs attention* reads all items in few statements."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.attention import services
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person, with_token
from controlplane.core.page_registry import ATTENTION_SOURCES
from switches.models import Episode, OnExpiry, Switch

pytestmark = pytest.mark.django_db
MAX_STATEMENTS = 18


@pytest.fixture
def busy():
    """Create a thousand engaged switches: overdue, expiring, neglected and permanent."""
    now = db_now()
    names = [f"payments.switch-{number}" for number in range(1000)]
    Switch.objects.bulk_create(
        Switch(id=f"feature:{name}", scope="feature", key=name, registered_at=now) for name in names
    )
    Episode.objects.bulk_create(episode(number, name, now) for number, name in enumerate(names))
    return now


def episode(number, name, now):
    month, day = timedelta(days=30), timedelta(days=1)
    kinds = (
        {"expires_at": now - day, "overdue_at": now - day},
        {"expires_at": now + timedelta(minutes=30)},
        {"expires_at": now + month},
        {"permanent": True, "reconfirm_due_at": now - day},
    )
    return Episode(
        switch_id=f"feature:{name}",
        reason="card payments charged twice",
        engaged_by_type="user",
        engaged_by_name="kim",
        engaged_by_identity="user:1",
        engaged_at=now - month,
        engaged_version=1,
        on_expiry=OnExpiry.HOLD,
        salt="salt",
        **kinds[number % len(kinds)],
    )


def test_everything_that_waits_takes_few_statements(busy):
    services.read_all(busy)

    with CaptureQueriesContext(connection) as queries:
        overview = services.read_all(busy)

    kinds = {one.kind for one in overview.waiting}
    assert {"overdue", "expiring", "forgotten", "unconfirmed"} <= kinds
    # In a test's transaction each source has a savepoint; in a request it has none.
    assert len([one for one in queries if "SAVEPOINT" not in one["sql"]]) < MAX_STATEMENTS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["page", "api"])
def test_request_takes_few_statements_and_no_transactions(busy, way):
    api, browser = with_token("switches:read"), browser_of(person())

    def ask():
        response = api.get("/attention/") if way == "api" else browser.get("/attention/")
        assert response.status_code == 200

    ask()
    with CaptureQueriesContext(connection) as queries:
        ask()

    assert not [one for one in queries if one["sql"].startswith(("BEGIN", "COMMIT", "SAVEPOINT"))]
    assert len(queries) < MAX_STATEMENTS


def test_source_without_its_rows_has_nothing_to_say(busy):
    sources = list(ATTENTION_SOURCES.values())

    each = [one for source in sources for one in source.function(busy)]
    waiting = services.read_sources(sources, busy).waiting

    repeated = [one for one in each if one not in waiting]
    assert {one.kind for one in repeated} == {"engaged"}  # Overdue, expiring and so on as well.
    assert len(waiting) + len(repeated) == len(each)
