"""What the screens say of the effect and the blast radius: never more than is known."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from controlplane.core.templatetags.screen import percent
from switches.models import Episode, Switch
from switches.templatetags.switchboard import milliseconds, per_second
from switches.tests.screens import (
    DIALOG,
    REASON,
    SAFE_NOW,
    Tags,
    browser,
    browser_as,
    engaged,
    page,
)
from switches.tests.there import acknowledged, checks, says

FINANCE = "/switches/segment/finance/"
EFFECT = f"{FINANCE}effect/"
PART = {"HX-Request": "true"}


def text(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


def told(client, path=EFFECT):
    return text(page(client.get(path, headers=PART)))


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(0, "0/s"), (0.02, "< 0.1/s"), (3.44, "3.4/s"), (9.97, "10/s"), (1240.4, "1,240/s")],
)
def test_rate_is_shown_as_people_read_it(rate, shown):
    assert per_second(rate) == shown


@pytest.mark.parametrize(
    ("duration", "shown"), [(0, "0 ms"), (999, "999 ms"), (1240, "1.2 s"), (185_000, "3 min 5 s")]
)
def test_delay_is_shown_as_people_read_it(duration, shown):
    assert milliseconds(duration) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [("12.50", "12.5 %"), ("100.00", "100 %"), ("0.07", "0.07 %"), ("99.99", "99.99 %")],
)
def test_share_is_shown_without_rounding_and_without_idle_zeros(share, shown):
    assert percent(Decimal(share)) == shown


@pytest.mark.django_db
class TestPanel:
    @pytest.fixture
    def finance(self):
        engaged("segment:finance")
        return Switch.objects.get()

    def test_with_nobody_there_nothing_is_claimed(self, finance):
        said = told(browser_as("viewer"))

        assert "Its effect is not known" in said
        assert "No instance was heard from within 30 seconds, so nothing is known" in said
        assert "Applied by" not in said

    def test_straggler_is_named_with_what_it_says_and_when(self, finance):
        now = db_now()
        says("core/a1", finance.version - 1, now - timedelta(seconds=4))
        for name in ("core/a2", "core/a3", "core/a4"):
            says(name, finance.version, now)
            acknowledged(name, finance, 41)

        said = told(browser_as("viewer"))

        assert "Applied by 3 of 4 instances" in said
        assert "Traffic may still flow through 1 instance" in said
        assert re.search(r"core/a1 ?applies version 0 · heard [45] s ago", said)
        assert "Of the 3 that were there before the commit and have said so: half within" in said
        assert "half within 41 ms, 99 % within 41 ms" in said

    def test_all_of_them_are_told_as_what_they_say(self, finance):
        says("core/a1", finance.version, db_now())
        says("core/a2", finance.version, db_now())

        said = told(browser_as("viewer"))

        assert "Applied by all 2 instances heard from" in said
        assert "says that it applies version 1, in which segment:finance is engaged" in said
        assert "blocks" not in said
        assert "may still" not in said

    def test_one_that_fell_silent_before_saying_so_is_told(self, finance):
        says("core/a1", finance.version, db_now())
        says("core/lost", 0, db_now() - timedelta(seconds=70))

        said = told(browser_as("viewer"))

        assert "Applied by the 1 instance heard from; 1 fell silent" in said
        assert "1 fell silent within the last 5 minutes" in said
        assert "core/lostapplies version 0 · heard 1 min ago" in said

    def test_header_is_whole_only_when_nothing_speaks_against_it(self, finance):
        client = browser_as("viewer")

        def is_whole():
            (panel,) = Tags(page(client.get(EFFECT))).having("section", id="effect-page")
            return "effect--whole" in panel["class"]

        says("core/a1", finance.version, db_now())
        assert is_whole()
        long_ago = db_now() - timedelta(hours=2)
        expired = {"expires_at": long_ago + timedelta(hours=1), "on_expiry": "release"}
        Episode.objects.update(engaged_at=long_ago, **expired)
        assert "Past its expiry" in told(client)
        assert not is_whole()
        Episode.objects.update(on_expiry="hold")
        assert is_whole()
        says("core/lost", 0, db_now() - timedelta(seconds=70))
        assert not is_whole()

    def test_of_many_stragglers_twenty_are_named_and_the_rest_counted(self, finance):
        for number in range(40):
            says(f"core/a{number:02}", 0, db_now())

        on_the_page = told(browser_as("viewer"))
        in_the_dialog = told(browser_as("operator"), f"{EFFECT}?in=dialog")

        assert "core/a19" in on_the_page
        assert "core/a20" not in on_the_page
        assert "and 20 more" in on_the_page
        assert "core/a04" not in in_the_dialog
        assert "and 36 more" in in_the_dialog

    def test_release_is_not_told_as_flowing_before_it_is(self, finance):
        says("core/a1", finance.version, db_now())
        browser_as("operator").post(f"{FINANCE}release/", {"justification": SAFE_NOW})

        said = told(browser_as("viewer"))

        assert "Traffic may still be blocked by 1 instance" in said
        assert "Applied by 0 of 1 instance" in said

    def test_ramp_is_told_as_a_share(self, finance):
        Episode.objects.update(allow_percent=25)
        says("core/a1", 0, db_now())

        assert "Another share may still flow through 1 instance" in told(browser_as("viewer"))

    @pytest.mark.parametrize(
        ("applied", "changed_ago", "pace"),
        [(0, timedelta(), "1s"), (1, timedelta(), "5s"), (0, timedelta(minutes=11), "5s")],
    )
    def test_looks_each_second_while_it_spreads_and_less_often_after(
        self, finance, applied, changed_ago, pace
    ):
        says("core/a1", applied, db_now())
        Switch.objects.update(committed_at=finance.committed_at - changed_ago)

        (panel,) = Tags(page(browser_as("viewer").get(EFFECT))).having("section", id="effect-page")

        assert panel["hx-trigger"] == f"every {pace}, refresh from:body"
        assert panel["hx-get"] == EFFECT

    def test_looks_less_often_where_each_look_reads_many_instances(self, finance):
        now = db_now()
        Instance.objects.bulk_create(
            Instance(id=f"core/a{number}", service="core", heard_at=now) for number in range(1001)
        )

        (panel,) = Tags(page(browser_as("viewer").get(EFFECT))).having("section", id="effect-page")

        assert panel["hx-trigger"] == "every 3s, refresh from:body"
        assert "Applied by 0 of 1,001 instances" in told(browser_as("operator"))

    def test_looks_each_second_while_one_has_fallen_silent(self, finance):
        says("core/a1", finance.version, db_now())
        says("core/lost", 0, db_now() - timedelta(seconds=70))

        (panel,) = Tags(page(browser_as("viewer").get(EFFECT))).having("section", id="effect-page")

        assert panel["hx-trigger"] == "every 1s, refresh from:body"

    def test_page_has_it_without_a_script(self, finance):
        says("core/a1", finance.version - 1, db_now())

        assert "Applied by 0 of 1 instance" in text(page(browser_as("viewer").get(FINANCE)))

    def test_switch_that_was_never_published_has_none(self):
        client = browser_as("viewer")

        assert client.get("/switches/feature/new/effect/").status_code == 204
        assert 'id="effect-page"' not in page(client.get("/switches/feature/new/"))

    def test_what_can_be_no_switch_is_not_found(self):
        client = browser_as("viewer")

        assert client.get("/switches/galaxy/x/effect/").status_code == 404
        assert client.get("/switches/galaxy/x/callers/").status_code == 404

    @pytest.mark.parametrize("part", ["effect/", "callers/"])
    def test_signed_out_part_is_401(self, client, part):
        assert client.get(f"{FINANCE}{part}", headers=PART).status_code == 401

    def test_number_of_queries_does_not_grow_with_the_instances(self, finance):
        client = browser_as("viewer")

        def queries():
            with CaptureQueriesContext(connection) as caught:
                client.get(EFFECT, headers=PART)
            return len(caught)

        says("core/a0", 0, db_now())
        few = queries()
        for number in range(30):
            says(f"core/a{number}", 0, db_now())

        assert queries() == few <= 10


@pytest.mark.django_db
class TestEngaging:
    def engage(self, client, path="", **fields):
        asked = {"scope": "segment", "key": "finance", "reason": REASON, "how_long": "24h"}
        return client.post(f"/switches/engage/{path}", {**asked, **fields}, headers=DIALOG)

    def test_confirmation_claims_no_more_than_the_commit(self):
        says("core/a1", 0, db_now())

        said = text(page(self.engage(browser_as("operator"))))

        assert "Committed. Applied by 0 of 1 instance" in said
        assert "segment:finance is engaged as of version 1" in said
        assert "is stopped" not in said

    def test_who_is_hit_stands_in_the_form_before_the_button(self):
        checks("core/a1", "segment:finance", at=db_now(), per_second=10)
        client = browser_as("operator")

        html = page(client.get("/switches/engage/?scope=segment&key=finance", headers=DIALOG))

        assert "1 instance of 1 service checked segment:finance" in text(html)
        assert html.index("1 instance of 1 service") < html.index("data-verb")

    def test_sum_stands_beside_the_button_whatever_else_is_said_there(self):
        checks("core/a1", "segment:finance", at=db_now(), per_second=10)
        client = browser_as("operator")

        for fields in ({}, {"reason": ""}):
            html = page(self.engage(client, "preview/", **fields))
            beside_the_button = html.partition('id="blast"')[0]
            assert "Checked by 1 instance: 10/s" in text(beside_the_button)

    def test_tokens_are_no_services(self):
        now = db_now()
        checks("core/a1", "segment:finance", at=now)
        for name in ("token:billing", "token:mail", "token:ledger"):
            checks(name, "segment:finance", at=now)

        said = text(page(self.engage(browser_as("operator"), "preview/")))

        assert "1 instance of 1 service and 3 tokens checked segment:finance" in said

    def test_tokens_alone_are_named_as_such(self):
        checks("token:billing", "segment:finance", at=db_now())

        html = page(self.engage(browser_as("operator"), "preview/"))

        assert "1 token checked segment:finance" in text(html)
        assert "token:billing" in text(html)
        assert "Services that check it" not in html

    def test_preview_says_who_is_hit_also_while_the_reason_is_missing(self):
        checks("core/a1", "segment:finance", at=db_now(), per_second=10)

        html = page(self.engage(browser_as("operator"), "preview/", reason=""))

        assert "1 instance of 1 service checked segment:finance" in text(html)
        assert Tags(html).having("div", id="blast", hx_swap_oob="merge")

    def test_preview_of_a_key_nobody_checks_does_not_call_it_safe(self):
        said = text(page(self.engage(browser_as("operator"), "preview/")))

        assert "Nobody was seen checking segment:finance within the last hour" in said
        assert "may depend on it all the same" in said

    def test_preview_of_the_global_switch_is_everybody(self):
        checks("core/a1", "segment:finance", at=db_now())
        checks("core/a2", "feature:beta", at=db_now())

        said = text(page(self.engage(browser_as("operator"), "preview/", scope="global", key="")))

        assert "2 instances of 1 service checked switches" in said

    @pytest.mark.parametrize("fields", [{"key": ""}, {"key": "a b"}, {"scope": "galaxy"}])
    def test_what_is_no_switch_yet_hits_nobody(self, fields):
        response = self.engage(browser_as("operator"), "preview/", **fields)

        assert response.status_code == 200
        assert "checked" not in text(page(response))

    def test_overlapping_switch_is_named(self):
        checks("core/a1", "segment:finance", "feature:beta", at=db_now())
        kim = engaged("feature:beta", reason="Ledger drifts since 01:00, INC-1")

        said = text(page(self.engage(browser(kim), "preview/")))

        assert "These callers also check" in said
        assert "Ledger drifts since 01:00, INC-1" in said


@pytest.mark.django_db
def test_page_of_a_switch_says_who_checks_it():
    now = db_now()
    for number in range(25):
        checks(f"s{number}/a", "segment:finance", at=now, per_second=number)

    said = text(page(browser_as("viewer").get(FINANCE)))

    assert "25 instances of 25 services checked it" in said
    assert "and 19 more services" in said
    assert "The 20 busiest callers" in said


@pytest.mark.django_db
def test_page_of_a_released_switch_claims_no_traffic_while_the_global_one_is_engaged():
    now = db_now()
    engaged("segment:finance")
    browser_as("operator").post(f"{FINANCE}release/", {"justification": SAFE_NOW})
    says("core/a1", Switch.objects.get().version, now)
    engaged("global:all")

    said = text(page(browser_as("viewer").get(FINANCE)))

    assert "This switch tells no service to block. But global:all tells every service" in said
    assert "says that it applies version 2, in which segment:finance is released" in said
    assert "flows" not in said


@pytest.mark.django_db
def test_ids_stay_unique_with_the_dialog_over_the_page():
    checks("core/a1", "segment:finance", at=db_now())
    client = browser_as("operator")
    engaged("segment:finance")

    under = page(client.get(FINANCE))
    over = page(client.get("/switches/engage/?scope=segment&key=finance", headers=DIALOG))

    ids = [tag["id"] for html in (under, over) for _, tag in Tags(html).found if "id" in tag]
    assert len(ids) == len(set(ids))
