"""The approvals page when more waits than one page shows."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role

pytestmark = pytest.mark.django_db


def waiting(kind, numbers):
    Approval.objects.bulk_create(
        Approval(
            kind=kind,
            target=f"segment:{kind}{number}",
            summary=f"{kind} number {number:03}",
            reason="INC-12",
            requested_by="user:kim",
            requested_at=db_now(),
        )
        for number in numbers
    )


def test_rest_is_on_further_pages_after_all_reviews():
    waiting("permanent", range(150))
    waiting("break_glass_review", range(60))
    client = as_role("approver").client

    pages = [client.get(f"/approvals/?page={page}").content.decode() for page in (1, 2, 3)]

    assert "210 waiting" in pages[0]
    assert "break_glass_review number 059" in pages[0]
    assert "permanent number 039" in pages[0]
    assert "permanent number 040" not in pages[0]
    assert "permanent number 040" in pages[1]
    assert "permanent number 149" in pages[2]
    assert "Reviews to sign" not in pages[2]
    assert "page=2" in pages[0]
    assert "Nothing to decide" not in "".join(pages)


def test_number_of_queries_does_not_grow_with_what_waits():
    client = as_role("approver").client

    def queries():
        with CaptureQueriesContext(connection) as caught:
            client.get("/approvals/")
        return len(caught)

    waiting("permanent", range(2))
    queries()
    few = queries()
    waiting("permanent", range(2, 90))

    assert queries() <= few
