"""Re-confirmation of a permanent episode: by the API, on its row and on its page."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, with_token
from switches import services
from switches.models import Episode
from switches.tests.browsers import DIALOG, browser, page, text
from switches.tests.test_reconfirm import REASON, permanent

DAY = timedelta(days=1)
FINANCE = "/switches/segment/finance"
pytestmark = pytest.mark.django_db


class TestApi:
    def test_person_reconfirms(self, kim):
        permanent(kim)
        api = as_role("operator")

        response = api.post(f"{FINANCE}/reconfirm", {"reason": REASON})

        assert response.status_code == 200
        assert (response.json()["state"], response.json()["permanent"]) == ("engaged", True)
        last = api.get(f"{FINANCE}/history").json()["results"][0]
        assert last["reconfirm_due_at"] > last["engaged_at"]

    def test_token_is_refused(self, kim):
        permanent(kim)

        response = with_token("switches:write", owner=kim).post(
            f"{FINANCE}/reconfirm", {"reason": REASON}
        )

        assert response.status_code == 403
        assert "not a token" in response.json()["detail"]

    def test_dry_run_changes_nothing(self, kim):
        episode = permanent(kim)

        response = as_role("operator").post(
            f"{FINANCE}/reconfirm", {"reason": REASON, "dry_run": True}
        )

        assert response.json()["dry_run"] is True
        again = Episode.objects.get()
        assert (again.reconfirm_due_at, again.reconfirmed_at) == (episode.reconfirm_due_at, None)

    def test_vague_reason_and_no_permanence_are_refused(self, kim):
        api = as_role("operator")

        assert api.post(f"{FINANCE}/reconfirm", {"reason": REASON}).status_code == 409
        permanent(kim)
        vague = api.post(f"{FINANCE}/reconfirm", {"reason": "test"})
        assert vague.status_code == 400
        assert "reason" in vague.json()["errors"]


class TestPage:
    def test_row_and_page_say_by_when_and_offer_it(self, kim):
        permanent(kim)

        board, one = (page(browser(kim).get(path)) for path in ("/", f"{FINANCE}/"))

        assert "re-confirm by" in text(board)
        assert f"{FINANCE}/reconfirm/" in board
        assert f"{FINANCE}/reconfirm/" in one
        assert f"{FINANCE}/extend/" not in one

    def test_one_nobody_spoke_for_says_so(self, kim):
        permanent(kim)
        Episode.objects.update(reconfirm_due_at=db_now() - DAY)

        board, one = (text(page(browser(kim).get(path))) for path in ("/", f"{FINANCE}/"))

        assert "re-confirmation overdue since" in board
        assert "stays engaged; people are notified" in one

    def test_form_reconfirms(self, kim):
        permanent(kim)

        response = browser(kim).post(f"{FINANCE}/reconfirm/", {"reason": REASON}, follow=True)

        assert "Re-confirm it again by" in page(response)
        assert Episode.objects.get().reconfirmed_by == "user:kim"

    def test_vague_reason_stays_in_the_form(self, kim):
        permanent(kim)

        response = browser(kim).post(f"{FINANCE}/reconfirm/", {"reason": "test"}, headers=DIALOG)

        assert response.status_code == 422
        assert ">test</textarea>" in page(response)
        assert Episode.objects.get().reconfirmed_at is None

    def test_one_with_an_expiry_is_led_to_extending(self, kim):
        services.engage(
            scope="segment",
            key="finance",
            reason=REASON,
            expires_in="1h",
            actor=kim.as_actor(),
            now=db_now(),
        )

        html = page(browser(kim).get(f"{FINANCE}/reconfirm/"))

        assert "The engagement is not permanent" in html

    def test_viewer_may_not(self, kim):
        permanent(kim)

        response = browser(person("viewer", "vera")).get(f"{FINANCE}/reconfirm/")

        assert response.status_code == 403
