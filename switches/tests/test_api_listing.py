"""The list read from columns equals the resources of the models."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.core.http.tests.callers import as_role, with_token
from controlplane.core.instances.models import Instance
from switches.models import Episode, Publication, Switch

pytestmark = pytest.mark.django_db


def rows_of(api, **params):
    response = api.get("/switches/", params)
    assert response.status_code == 200, response.content
    return response.json()["results"]


@pytest.fixture
def board():
    """Create switches in every state, described ones and one never published."""
    operator = as_role("operator")
    for name in ("global:all", "feature:beta", "segment:finance", "experiment:color"):
        operator.engage(name)
    operator.patch("/switches/segment/unpublished/", {"owner": "Growth"})
    Episode.objects.filter(switch="feature:beta").update(allow_percent="12.5")
    Episode.objects.filter(switch="segment:finance").update(overdue_at=timezone.now())
    Episode.objects.filter(switch="experiment:color").update(expires_at=None, permanent=True)
    whole = timezone.now().replace(microsecond=0)
    Switch.objects.filter(pk="global:all").update(last_proven_at=whole)
    Episode.objects.filter(switch="global:all").update(expires_at=whole + timedelta(days=1))
    return with_token("switches:read")


def test_listed_row_equals_the_switch_by_itself(board):
    listed = rows_of(board)

    assert len(listed) == 5
    for row in listed:
        alone = board.get(f"/switches/{row['scope']}/{row['key']}/").json()
        assert row == alone


def test_listed_row_counts_instances_as_the_switch_by_itself_does(board):
    head, now = Publication.objects.get(), timezone.now()
    for number in range(3):
        Instance.objects.create(
            id=f"core/{number}",
            service="core",
            heard_at=now,
            first_heard_at=now - timedelta(hours=1),
            applied_epoch=head.epoch,
            applied_version=head.version - number,
        )

    for row in rows_of(board):
        assert row == board.get(f"/switches/{row['scope']}/{row['key']}/").json()


def test_more_switches_take_no_more_statements(board):
    rows_of(board, limit=2)
    with CaptureQueriesContext(connection) as few:
        rows_of(board, limit=2)

    with CaptureQueriesContext(connection) as many:
        rows_of(board, limit=5)

    assert len(many) == len(few) <= 5


def test_changed_switch_is_shown_at_once_under_the_same_address(board):
    before = {row["id"]: row["owner"] for row in rows_of(board)}

    as_role("admin").patch("/switches/feature/beta/", {"owner": "Payments"})

    after = {row["id"]: row["owner"] for row in rows_of(board)}
    assert after == {**before, "feature:beta": "Payments"}
