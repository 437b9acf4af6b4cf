"""Comments on alerts and episodes: pages, API, permissions, timeline and postmortem."""

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.comments.models import Comment
from controlplane.core.http.tests.callers import as_role
from slo.models import Alert
from slo.postmortems import draft
from switches.models import Episode
from switches.tests.browsers import DIALOG, browser_as, engaged, page, text

pytestmark = pytest.mark.django_db
WORDS = "데이터베이스를 되돌렸다 · تمت الإعادة <b>& co</b>"


@pytest.fixture
def alert():
    now = db_now()
    return Alert.objects.create(
        kind="burn", rule="r", severity="critical", label="page", service="core", subject="core-a",
        summary="core-a burns", opened_at=now, firing_at=now,
    )  # fmt: skip


def test_comment_on_an_alert_is_in_its_timeline_and_postmortem_and_audited(alert):
    browser, path = browser_as("operator"), f"/comments/alert/{alert.pk}/"
    assert f'href="{path}"' in page(browser.get(f"/alerts/{alert.pk}/"))

    response = browser.post(path, {"text": WORDS}, headers=DIALOG)

    assert response.status_code == 204
    html = page(browser.get(f"/alerts/{alert.pk}/"))
    assert "데이터베이스를 되돌렸다" in html
    assert "<b>& co" not in html
    assert "데이터베이스를 되돌렸다" in draft.write_draft(alert, db_now())
    row = AuditEntry.objects.get(action="alert.commented")
    assert (row.target, row.reason, row.actor_name) == (
        f"alert:{alert.pk}", WORDS, "a-operator",
    )  # fmt: skip


def test_comment_on_an_episode_is_on_the_page_of_its_switch_and_in_the_postmortem(alert):
    engaged("segment:finance")
    episode = Episode.objects.get()

    browser_as("operator").post(f"/comments/episode/{episode.pk}/", {"text": "vendor called back"})

    shown = text(page(browser_as("viewer").get("/switches/segment/finance/")))
    assert "vendor called back" in shown
    assert "user:a-operator" in str(Comment.objects.get().author)
    assert "vendor called back" in draft.write_draft(alert, db_now())


@pytest.mark.parametrize("name", ["alerts", "switches"])
def test_api_lists_and_adds_comments(alert, name):
    engaged("segment:finance")
    path = {"alerts": f"/alerts/{alert.pk}/", "switches": "/switches/segment/finance/"}[name]
    operator, viewer = as_role("operator"), as_role("viewer")

    first = operator.post(f"{path}comments/", {"text": WORDS})
    operator.post(f"{path}comments/", {"text": "second"})
    listed = viewer.get(f"{path}comments/").json()["results"]
    refused = viewer.post(f"{path}comments/", {"text": "third"})

    assert first.status_code == 201
    assert [one["text"] for one in listed] == ["second", WORDS]
    assert listed[1] == {**first.json(), "author": "user:a-operator"}
    assert refused.status_code == 403
    assert operator.post(f"{path}comments/", {"text": "dry", "dry_run": True}).status_code == 200
    assert Comment.objects.count() == 2


@pytest.mark.parametrize("words", ["", "   ", "x" * 2001, "a\x00b"])
def test_empty_long_and_unreadable_comments_are_refused(alert, words):
    response = as_role("operator").post(f"/alerts/{alert.pk}/comments/", {"text": words})

    assert response.status_code == 400
    assert not Comment.objects.exists()


def test_viewer_gets_no_form(alert):
    browser, path = browser_as("viewer"), f"/comments/alert/{alert.pk}/"

    assert path not in page(browser.get(f"/alerts/{alert.pk}/"))
    assert browser.get(path).status_code == 403
    assert browser.post(path, {"text": "x"}).status_code == 403


@pytest.mark.parametrize(
    "path", ["alert/0", "alert/x", "episode/7", "teapot/1", "alert/" + "9" * 30]
)
def test_comment_on_what_is_not_there_is_not_found(path):
    assert browser_as("operator").get(f"/comments/{path}/").status_code == 404


def test_switch_that_was_never_engaged_has_no_comments():
    assert as_role("operator").get("/switches/segment/calm/comments/").status_code == 404
