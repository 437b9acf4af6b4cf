"""The API of reports: the list, one week, the running week, and signing."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from switches.models import WeeklyReport
from switches.report import services
from switches.report.compose import get_zone
from switches.report.tests.house import SHELL, engage, release

pytestmark = pytest.mark.django_db
HISTORY = "/reports/weekly/"


@pytest.fixture
def kept(running):
    """Generate the reports of the last three weeks; return the weeks, oldest first."""
    found = [running.later(-n) for n in (3, 2, 1)]
    for week in found:
        services.generate_report(week=week, actor=SHELL, now=db_now())
    return found


def test_the_history_is_told_newest_first_in_pages(kept):
    api = with_token("reports:read")

    first = api.get(HISTORY, {"limit": 2}).json()
    second = api.client.get(first["next"], headers=api.headers).json()

    weeks_told = [row["week"] for row in first["results"] + second["results"]]
    assert weeks_told == [str(week) for week in reversed(kept)]
    assert "sections" not in first["results"][0]
    assert second["next"] is None


def test_one_report_is_told_with_its_sections_and_its_anchor(kept):
    body = with_token("reports:read").get(f"{HISTORY}{kept[-1]}/").json()

    report = WeeklyReport.objects.get(week=str(kept[-1]))
    assert body["final"] is True
    assert body["anchor"] == {"id": report.anchor_id, "hash": report.anchor_hash}
    assert body["sections"][0]["slug"] == "vague_reasons"
    assert datetime.fromisoformat(body["ends_at"]) == kept[-1].ends_at(get_zone())


def test_the_running_week_takes_few_queries(running):
    now = db_now()
    engage("segment:finance", now - timedelta(hours=2))
    engage("feature:search", now - timedelta(hours=1))
    release("feature:search", now)
    readers = (with_token("reports:read"), as_role("viewer"))
    for api in readers:
        api.get(f"{HISTORY}{running}/")

    for api in readers:
        with CaptureQueriesContext(connection) as queries:
            api.get(f"{HISTORY}{running}/")

        # Each section has a savepoint, because tests run in a transaction. Two queries by id find
        # switches that were extended often; one query of both tables is slow in a long trail.
        # For the breakers' section, one query finds failing dependencies, and one unused samples.
        # One reads the teams' revision, for what nobody owns, and one when the trail begins.
        assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) <= 36


def test_the_running_week_is_told_as_it_stands_and_not_kept(running):
    engage("segment:finance", db_now() - timedelta(seconds=1))

    body = with_token("reports:read").get(f"{HISTORY}{running}/").json()

    assert (body["final"], body["anchor"]) == (False, None)
    active = next(s for s in body["sections"] if s["slug"] == "active")
    assert active["rows"][0]["path"] == "/switches/segment/finance/"
    assert not WeeklyReport.objects.exists()


@pytest.mark.parametrize("week", ["2026-W1", "nonsense", "2025-W53", "0000-W01", "１２３４-W10"])
def test_what_is_no_week_is_not_found(week):
    response = with_token("reports:read").get(f"{HISTORY}{week}/")

    assert response.status_code == 404
    assert "such as 2026-W47" in response.json()["detail"]


def test_a_week_to_come_and_one_without_a_report_are_not_found(running):
    api = with_token("reports:read")

    coming, past = (api.get(f"{HISTORY}{running.later(n)}/") for n in (1, -2))

    assert (coming.status_code, past.status_code) == (404, 404)
    assert "has not begun" in coming.json()["detail"]
    assert "report weekly" in past.json()["detail"]


def test_reading_takes_its_scope(kept):
    other = with_token("switches:read")

    assert other.get(HISTORY).status_code == 403
    assert other.get(f"{HISTORY}{kept[0]}/").status_code == 403
    assert as_role("viewer").get(HISTORY).status_code == 200


def test_an_approver_signs_and_signing_again_answers_the_same(kept):
    api = signed_in(person("approver", "ayse"))
    path = f"{HISTORY}{kept[-1]}/sign"

    first, again = api.post(path, {"comment": "read it"}), api.post(path, {})

    assert first.status_code == again.status_code == 200
    assert first.json()["signed_by"] == "user:ayse"
    assert again.json() == first.json()
    assert first.json()["comment"] == "read it"


def test_a_second_signature_is_a_conflict_that_names_the_first(kept):
    path = f"{HISTORY}{kept[-1]}/sign"
    signed_in(person("approver", "ayse")).post(path)

    response = signed_in(person("admin", "root")).post(path)

    assert response.status_code == 409
    assert response.json()["signed_by"] == "user:ayse"


def test_tokens_and_operators_may_not_sign(kept):
    path = f"{HISTORY}{kept[-1]}/sign"

    assert with_token("reports:read", "switches:write").post(path).status_code == 403
    assert as_role("operator").post(path).status_code == 403
    assert WeeklyReport.objects.get(week=str(kept[-1])).signed_at is None


def test_the_running_week_is_signed_once_its_report_is_kept(running):
    approver = as_role("approver")

    unsaved_report = approver.post(f"{HISTORY}{running}/sign")
    services.generate_report(week=running, actor=SHELL, now=db_now())
    response = approver.post(f"{HISTORY}{running}/sign", {"comment": "read it"})

    assert (unsaved_report.status_code, response.status_code) == (404, 200)
    body = approver.get(f"{HISTORY}{running}/").json()
    assert (body["signed_by"], body["final"]) == ("user:a-approver", False)


def test_a_dry_run_signs_nothing(kept):
    response = as_role("approver").post(f"{HISTORY}{kept[-1]}/sign", {"dry_run": True})

    assert response.json()["dry_run"] is True
    assert response.json()["signed_by"] == "user:a-approver"
    assert WeeklyReport.objects.get(week=str(kept[-1])).signed_at is None


def test_a_comment_that_is_too_long_is_told(kept):
    response = as_role("approver").post(f"{HISTORY}{kept[-1]}/sign", {"comment": "x" * 2001})

    assert response.status_code == 400
    assert "comment" in response.json()["errors"]
