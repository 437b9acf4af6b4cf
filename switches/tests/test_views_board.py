"""The switchboard: rows, order, permissions and polling."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.first_steps.models import FirstStepsState
from controlplane.core.http.tests.callers import person
from switches import services
from switches.models import Episode
from switches.tests.browsers import (
    PART,
    REASON,
    browser,
    browser_as,
    engaged,
    overdue,
    page,
    released,
    switches_shown,
    text,
    within_a_minute,
)
from switches.tests.bulk_engagements import engage_alike
from switches.tests.instances import report_checks
from switches.tests.ramps import start_ramp

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="class")
def board(class_db):
    """Create one of each: global, overdue, two engaged, permanent, ramping, released."""
    engaged("segment:soon", expires_in="2h")
    engaged("feature:later", expires_in="7d")
    overdue("segment:late")
    engaged("segment:forever")
    Episode.objects.filter(switch="segment:forever").update(permanent=True, expires_at=None)
    engaged("experiment:ramp", expires_in="3d")
    Episode.objects.filter(switch="experiment:ramp").update(allow_percent=25)
    engaged("global:all", expires_in="24h")
    services.describe(
        scope="feature",
        key="calm",
        changes={"owner": "growth team"},
        actor=person("operator", "lee").as_actor(),
        now=db_now(),
    )


def test_search_finds_a_reason_and_a_person():
    engaged("segment:pay", reason="결제 이중 청구 의심, INC-4411")
    client = browser_as("viewer")

    assert switches_shown(page(client.get("/", {"q": "이중 청구"}))) == ["segment:pay"]
    assert switches_shown(page(client.get("/", {"q": "kim"}))) == ["segment:pay"]


def test_search_finds_a_long_reason_as_it_was_written():
    engaged("segment:pay", reason="card payments were charged twice since 02:10 in Seoul, INC-4411")
    client = browser_as("viewer")

    found = {
        text: switches_shown(page(client.get("/", {"q": text})))
        for text in (
            "card payments were charged twice since 02:10 in Seoul, INC-4411",
            "card payments were charged twice since 02:10 in Busan",
        )
    }

    assert list(found.values()) == [["segment:pay"], []]


def test_null_character_in_a_search_is_no_error():
    assert browser_as("viewer").get("/", {"q": "a\x00b"}).status_code == 200


def test_nothing_stopped_says_so_and_teaches():
    html = page(browser_as("operator").get("/"))

    assert "Nothing is engaged" in html
    assert "What a switch can stop" in html
    assert "/switches/engage/" in html


def test_row_tells_reason_who_and_until_when():
    engaged("segment:finance")

    html = page(browser_as("viewer").get("/"))

    assert REASON in html
    assert "kim" in html
    assert "then hold" in html
    assert 'data-until="' in html


def test_undo_is_offered_to_whoever_engaged_for_thirty_seconds():
    kim = engaged("segment:fresh")
    engaged("segment:older", now=db_now() - timedelta(seconds=31))

    mine, others = page(browser(kim).get("/")), page(browser_as("operator").get("/"))

    assert "/switches/segment/fresh/undo/" in mine
    assert "/switches/segment/older/undo/" not in mine
    assert "/undo/" not in others


def test_what_people_type_is_text_not_markup():
    engaged("segment:xss", reason="<script>alert(1)</script> payments fail \"' onload=x")
    client = browser_as("operator")

    for path in ("/", "/?q=<script>alert(2)</script>", "/switches/segment/xss/", "/audit/"):
        html = page(client.get(path))
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert" in html


def test_fifty_rows_make_a_page():
    engaged("feature:f00")
    engage_alike(Episode.objects.get(), [f"feature:f{number:02}" for number in range(1, 51)])
    client = browser_as("viewer")

    first, second = page(client.get("/")), page(client.get("/?page=2"))

    assert len(switches_shown(first)) == 50
    assert len(switches_shown(second)) == 1
    assert "?page=2" in first


def test_number_of_queries_does_not_grow_with_the_board():
    client = browser_as("operator")

    def queries():
        with CaptureQueriesContext(connection) as caught:
            assert client.get("/").status_code == 200
        return len(caught)

    FirstStepsState.objects.create(completed_at=db_now())
    engaged("feature:f0")
    client.get("/")  # The count of attention items is cached for some seconds.
    few = queries()
    engage_alike(Episode.objects.get(), [f"feature:f{number}" for number in range(1, 20)])

    assert queries() == few
    # The state of the first steps, the teams, the favorites, and the checks of the keys among them.
    assert few <= 17


class TestStaysCurrent:
    def head(self, client):
        """Return the poll token of a page that was just loaded."""
        html = page(client.get("/"))
        return re.search(r'name="since" value="([^"]+)"', html).group(1)

    def test_poll_that_saw_the_last_change_is_answered_with_204(self):
        engaged()
        client = browser_as("viewer")

        response = within_a_minute(
            lambda: client.get("/switchboard/rows/", {"since": self.head(client)}, headers=PART)
        )

        assert response.status_code == 204
        assert response["Switchgear-Now"].endswith("Z")

    def test_poll_without_news_costs_three_queries(self):
        engaged()
        client = browser_as("viewer")

        def queries():
            since = self.head(client)
            with CaptureQueriesContext(connection) as caught:
                client.get("/switchboard/rows/", {"since": since}, headers=PART)
            return len(caught)

        assert within_a_minute(queries) == 3  # the session, the person, the last audit row

    def test_change_of_anything_shown_brings_the_part_and_what_stands_above_it(self):
        engaged()
        client = browser_as("viewer")
        since = self.head(client)

        engaged("global:all")
        html = page(client.get("/switchboard/rows/", {"since": since}, headers=PART))

        assert switches_shown(html) == ["global:all", "segment:finance"]
        assert "<html" not in html
        assert 'id="alarm"' in html
        assert "Global stop engaged" in html

    def test_description_alone_is_news_too(self):
        engaged()
        client = browser_as("viewer")
        since = self.head(client)
        actor = person("operator", "lee").as_actor()

        services.describe(
            scope="segment", key="finance", changes={"owner": "x"}, actor=actor, now=db_now()
        )

        response = client.get("/switchboard/rows/", {"since": since}, headers=PART)
        assert response.status_code == 200

    def test_search_puts_itself_into_the_url(self):
        engaged()

        response = browser_as("viewer").get(
            "/switchboard/rows/",
            {"q": "fin", "scope": "", "state": "engaged"},
            headers={**PART, "HX-Trigger": "search"},
        )

        assert response["HX-Replace-Url"] == "/?q=fin&state=engaged"

    def test_signed_out_poll_gets_no_sign_in_form_to_merge(self):
        response = Client().get("/switchboard/rows/", headers=PART)

        assert response.status_code == 401
        assert response.content == b""


def test_times_are_in_the_persons_zone_and_in_utc():
    engaged("segment:finance")
    Episode.objects.update(engaged_at="2026-11-21T02:11:00Z", expires_at="2026-11-22T02:11:00Z")
    seoul = person("viewer", "seoul")
    seoul.time_zone = "Asia/Seoul"
    seoul.save()

    html = page(browser(seoul).get("/switches/segment/finance/"))

    assert 'datetime="2026-11-22T02:11:00.000000Z"' in html
    assert "22 Nov 2026 11:11:00 KST" in html
    assert "2026-11-22 11:11:00 KST · 2026-11-22 02:11:00 UTC" in html


def test_signed_out_person_comes_back_to_where_they_were_going():
    response = Client().get("/?state=overdue")

    assert response.status_code == 302
    assert response["Location"] == "/sign-in/?next=/%3Fstate%3Doverdue"


def test_nobody_keeps_a_copy_of_what_was_seen():
    assert "no-store" in browser_as("viewer").get("/")["Cache-Control"]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (1, "The only registered switch is released."),
        (2, "All 2 registered switches are released."),
    ],
)
def test_registered_switches_are_counted_in_words_that_fit(known, expected):
    for number in range(known):
        engaged(f"segment:s{number}")
        released(f"segment:s{number}")

    assert expected in text(page(browser_as("viewer").get("/")))


def test_checked_switches_are_not_counted_as_registered():
    engaged("segment:finance")
    report_checks("core/a1", "segment:finance", "segment:hr", at=db_now())

    shown = text(page(browser_as("viewer").get("/")))

    assert "of 1 registered switch. Services check others too, listed below." in shown


def test_ramp_says_that_the_global_switch_blocks_its_share():
    ramp = start_ramp()
    client = browser_as("viewer")
    assert "blocked by global:all" not in text(page(client.get("/")))

    engaged("global:all")

    assert "blocked by global:all" in text(page(client.get("/")))
    shown = text(page(client.get(f"/ramps/{ramp.pk}/")))
    assert "global:all blocks all traffic, so this ramp tests nothing" in shown
    assert "allowed now" not in shown


class TestOneOfEach:
    def test_most_urgent_come_first(self, board):
        html = page(browser_as("viewer").get("/"))

        assert switches_shown(html) == [
            "global:all",
            "segment:late",
            "segment:soon",
            "experiment:ramp",
            "feature:later",
            "segment:forever",
            "feature:calm",
        ]

    def test_counts_stand_at_the_top(self, board):
        html = " ".join(page(browser_as("viewer").get("/")).split())

        assert "5 engaged" in html
        assert "1 overdue" in html
        assert "1 ramping" in html
        assert "of 7 registered switches" in html

    @pytest.mark.parametrize(
        ("query", "shown"),
        [
            ("state=overdue", ["segment:late"]),
            ("state=ramping", ["experiment:ramp"]),
            ("state=released", ["feature:calm"]),
            ("state=engaged&scope=feature", ["feature:later"]),
            ("scope=experiment", ["experiment:ramp"]),
            ("q=SOON", ["segment:soon"]),
            ("q=segment:soon", ["segment:soon"]),
            ("q=growth", ["feature:calm"]),
            ("q=growth feature", ["feature:calm"]),
            ("q=growth segment", []),
            ("q=calm a c e f growth team", ["feature:calm"]),
            ("q=calm a c e f team growth", []),
            ("q=nothing-like-it", []),
            ("q=%25", []),
            ("page=2", []),
        ],
    )
    def test_filters_in_the_url_narrow_it(self, board, query, shown):
        assert switches_shown(page(browser_as("viewer").get(f"/?{query}"))) == shown

    @pytest.mark.parametrize("query", ["state=odd", "scope=odd", "page=0", "page=x", "page=-1"])
    def test_filter_that_makes_no_sense_narrows_nothing(self, board, query):
        assert len(switches_shown(page(browser_as("viewer").get(f"/?{query}")))) == 7

    def test_viewer_sees_no_button_that_changes_anything(self, board):
        html = page(browser_as("viewer").get("/"))

        for action in ("/engage/", "/extend/", "/release/", "/undo/"):
            assert action not in html

    def test_operator_sees_what_fits_each_row(self, board):
        html = page(browser_as("operator").get("/"))

        assert "/switches/segment/soon/extend/" in html
        assert "/switches/segment/soon/release/" in html
        assert "/switches/segment/forever/extend/" not in html
        assert "/switches/engage/?scope=feature&amp;key=calm" in html
