"""Engaging from the screen, as a page of its own and inside the dialog."""

from datetime import UTC, timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.models import Episode, Switch
from switches.tests.browsers import (
    DIALOG,
    REASON,
    Tags,
    browser,
    browser_as,
    engaged,
    local,
    page,
    text,
)

pytestmark = pytest.mark.django_db
ENGAGE = "/switches/engage/"


def filled(**fields):
    return {
        "scope": "segment",
        "key": "finance",
        "reason": REASON,
        "how_long": "24h",
        "on_expiry": "hold",
        **fields,
    }


class TestAsAPage:
    def test_engages_and_shows_the_switch_with_its_undo(self):
        client = browser_as("operator")

        response = client.post(ENGAGE, filled(), follow=True)

        assert response.redirect_chain == [("/switches/segment/finance/", 302)]
        assert "/switches/segment/finance/undo/" in page(response)
        episode = Episode.objects.get()
        assert (episode.reason, episode.engaged_by_name) == (REASON, "a-operator")
        assert episode.expires_at - episode.engaged_at == timedelta(hours=24)

    def test_target_in_the_url_is_filled_in(self):
        html = page(browser_as("operator").get(f"{ENGAGE}?scope=feature&key=smart-reply"))

        scopes = [tag for tag in Tags(html).having("option") if "selected" in tag]
        assert [tag["value"] for tag in scopes] == ["feature"]
        assert Tags(html).value("key") == "smart-reply"
        assert "Engage feature:smart-reply" in html

    @pytest.mark.parametrize(
        ("scope", "policy"),
        [("global", "hold"), ("segment", "hold"), ("feature", "ramp"), ("experiment", "ramp")],
    )
    def test_policy_starts_as_the_scopes_default(self, scope, policy):
        html = page(browser_as("operator").get(f"{ENGAGE}?scope={scope}&key=k"))

        checked = [tag for tag in Tags(html).having("input", name="on_expiry") if "checked" in tag]
        assert [tag["value"] for tag in checked] == [policy]

    @pytest.mark.parametrize(
        ("fields", "complaint"),
        [
            ({"reason": ""}, "A reason is required"),
            ({"reason": "too short"}, "The reason is too short"),
            ({"reason": "there is an issue please stop it"}, "too vague"),
            ({"reason": "x" * 2001}, "at most 2,000"),
            ({"key": ""}, "1 to 120"),
            ({"key": "a b"}, "1 to 120"),
            ({"scope": "galaxy"}, "Must be one of global"),
            ({"how_long": "at"}, "Choose a time"),
            ({"how_long": "at", "expires_at": "soon"}, "This is not a valid time in UTC"),
            ({"how_long": "at", "expires_at": "2020-01-01T00:00"}, "is in the past"),
            ({"how_long": "at", "expires_at": "2999-01-01T00:00"}, "at most 30 days"),
            ({"how_long": "1y"}, "not one of the available choices"),
            ({"on_expiry": "explode"}, "not one of the available choices"),
        ],
    )
    def test_wrong_field_is_told_and_everything_typed_is_kept(self, fields, complaint):
        fields_sent = filled(reason="Ledger rejects every batch since 01:00", key="ledger") | fields

        response = browser_as("operator").post(ENGAGE, fields_sent)

        html = page(response)
        assert response.status_code == 422
        assert complaint in html
        assert Tags(html).value("key") == fields_sent["key"]
        assert fields_sent["reason"] in html
        assert not Episode.objects.exists()

    def test_every_complaint_comes_at_once(self):
        response = browser_as("operator").post(
            ENGAGE, filled(scope="global", reason="stop", confirm="")
        )

        html = page(response)
        assert "The reason is too short" in html
        assert f"Type {settings.ENVIRONMENT_NAME} or global" in html

    def test_chosen_time_is_in_the_persons_zone(self):
        user = person("operator", "kim")
        user.time_zone = "Asia/Seoul"
        user.save()
        wall = (db_now() + timedelta(days=2)).replace(second=0, microsecond=0)

        browser(user).post(ENGAGE, filled(how_long="at", expires_at=local(wall)))

        with timezone.override("Asia/Seoul"):
            meant = timezone.make_aware(wall.replace(tzinfo=None))
        assert Episode.objects.get().expires_at == meant.astimezone(UTC)

    def test_hour_that_the_clock_change_skips_is_refused_in_words(self):
        user = person("operator", "kim")
        user.time_zone = "Europe/Istanbul"
        user.save()
        user.time_zone = "America/New_York"
        user.save()

        response = browser(user).post(ENGAGE, filled(how_long="at", expires_at="2027-03-14T02:30"))

        assert response.status_code == 422
        assert "This is not a valid time in America/New_York" in page(response)

    def test_permanent_engages_for_a_day_and_asks_a_second_person(self):
        client = browser_as("operator")

        html = page(client.post(ENGAGE, filled(how_long="permanent"), follow=True))

        episode = Episode.objects.get()
        assert not episode.permanent
        assert episode.expires_at - episode.engaged_at == timedelta(hours=24)
        assert Approval.objects.get().kind == "permanent"
        assert "Keep segment:finance engaged with no expiry" in html

    def test_engaged_already_says_what_happened_and_who_was_first(self):
        engaged("segment:finance", reason="Ledger drifts since 01:00, INC-1")

        response = browser_as("operator").post(ENGAGE, filled())

        html = page(response)
        assert response.status_code == 409
        assert "segment:finance is already engaged" in html
        assert "Ledger drifts since 01:00, INC-1" in html
        assert "user:kim engaged it at" in html
        assert REASON in html  # what was typed is kept
        assert Episode.objects.count() == 1

    def test_same_form_sent_twice_has_one_effect_and_one_answer(self):
        client = browser_as("operator")

        first = client.post(ENGAGE, filled())
        second = client.post(ENGAGE, filled())

        assert first.status_code == second.status_code == 302
        assert first["Location"] == second["Location"]
        assert Episode.objects.count() == 1
        assert AuditEntry.objects.filter(action="switch.engaged").count() == 1

    def test_viewer_is_refused(self):
        client = browser_as("viewer")

        assert client.get(ENGAGE).status_code == 403
        assert client.post(ENGAGE, filled()).status_code == 403
        assert not Switch.objects.exists()

    def test_form_without_its_csrf_token_is_refused(self):
        client = browser(person("operator"), csrf=True)

        assert client.post(ENGAGE, filled()).status_code == 403
        assert not Switch.objects.exists()


class TestSignedOutMeanwhile:
    def test_dialog_is_told_and_keeps_what_was_typed(self, client):
        response = client.post(ENGAGE, filled(), headers=DIALOG)

        assert response.status_code == 401
        assert not Switch.objects.exists()

    def test_plain_form_leads_to_the_sign_in(self, client):
        response = client.post(ENGAGE, filled())

        assert response["Location"] == "/sign-in/?next=/"


class TestGlobal:
    @pytest.mark.parametrize("typed", ["", "yes", "all", "segment"])
    def test_needs_the_typed_confirmation(self, typed):
        response = browser_as("operator").post(
            ENGAGE, filled(scope="global", key="", confirm=typed)
        )

        assert response.status_code == 422
        assert "to stop everything" in page(response)
        assert not Episode.objects.exists()

    @pytest.mark.parametrize("typed", ["global", " GLOBAL ", settings.ENVIRONMENT_NAME])
    def test_typed_confirmation_stops_everything(self, typed):
        response = browser_as("operator").post(
            ENGAGE, filled(scope="global", key="whatever", confirm=typed)
        )

        assert response.status_code == 302
        assert Episode.objects.get().switch_id == "global:all"

    def test_can_only_hold(self):
        response = browser_as("operator").post(
            ENGAGE, filled(scope="global", confirm="global", on_expiry="release")
        )

        assert response.status_code == 422
        assert "by itself" in page(response)

    def test_other_scopes_need_no_confirmation(self):
        assert browser_as("operator").post(ENGAGE, filled(confirm="")).status_code == 302


class TestWholeIdInTheKey:
    @pytest.mark.parametrize("typed", ["feature:nl2sql", " Feature: nl2sql "])
    def test_names_the_scope_too(self, typed):
        browser_as("operator").post(ENGAGE, filled(key=typed))

        episode = Episode.objects.get()
        assert episode.switch_id == "feature:nl2sql"
        assert episode.on_expiry == "ramp"  # the default of a feature: "hold" was the segment's

    def test_fills_both_fields_when_something_else_is_wrong(self):
        html = page(browser_as("operator").post(ENGAGE, filled(key="feature:nl2sql", reason="")))

        assert Tags(html).value("key") == "nl2sql"
        assert "Engage feature:nl2sql" in html

    def test_in_the_address_too(self):
        html = page(browser_as("operator").get(f"{ENGAGE}?key=feature:nl2sql"))

        assert Tags(html).value("key") == "nl2sql"
        assert "Engage feature:nl2sql" in html

    def test_global_still_has_to_be_confirmed(self):
        response = browser_as("operator").post(ENGAGE, filled(key="global:all"))

        assert response.status_code == 422
        assert "to stop everything" in page(response)

    def test_what_is_no_scope_is_told(self):
        html = page(browser_as("operator").post(ENGAGE, filled(key="team:nl2sql")))

        assert "without the scope" in html


class TestInTheDialog:
    def test_form_is_only_the_part(self):
        html = page(browser_as("operator").get(ENGAGE, headers=DIALOG))

        assert "<html" not in html
        assert 'id="dialog-title"' in html
        assert f'hx-post="{ENGAGE}"' in html

    def test_success_confirms_with_an_undo_and_refreshes_the_page_behind(self):
        response = browser_as("operator").post(ENGAGE, filled(), headers=DIALOG)

        html = page(response)
        assert response.status_code == 200
        assert "refresh" in response["HX-Trigger"]
        assert "segment:finance" in html
        assert "/switches/segment/finance/undo/" in html

    def test_pressed_twice_confirms_twice_and_engages_once(self):
        client = browser_as("operator")

        client.post(ENGAGE, filled(), headers=DIALOG)
        again = client.post(ENGAGE, filled(), headers=DIALOG)

        assert again.status_code == 200
        assert "/switches/segment/finance/undo/" in page(again)
        assert Episode.objects.count() == 1

    def test_error_is_the_form_again_inside_the_dialog(self):
        response = browser_as("operator").post(ENGAGE, filled(reason="stop"), headers=DIALOG)

        assert response.status_code == 422
        assert "<html" not in page(response)
        assert "The reason is too short" in page(response)


class TestPreview:
    def preview(self, client, **fields):
        return client.post(f"{ENGAGE}preview/", filled(**fields), headers=DIALOG)

    def test_says_what_would_happen_and_does_nothing(self):
        html = page(self.preview(browser_as("operator")))

        assert "Every service will be told to stop segment:finance" in text(html)
        assert "24 h from now" in html
        assert not Switch.objects.exists()
        assert not AuditEntry.objects.exists()

    def test_says_who_is_first_already(self):
        engaged()

        assert "segment:finance is already engaged" in page(self.preview(browser_as("operator")))

    def test_says_what_the_reason_lacks(self):
        html = page(self.preview(browser_as("operator"), reason="please stop"))

        assert "too vague" in html

    def test_is_not_for_viewers(self):
        assert self.preview(browser_as("viewer")).status_code == 403
