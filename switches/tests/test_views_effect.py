"""Effect and blast radius on screens: no more than is known."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from controlplane.core.templatetags.screen import percent
from switches.check_descriptions import format_rate
from switches.models import Episode, Switch
from switches.templatetags.switchboard import milliseconds
from switches.tests.browsers import (
    DIALOG,
    REASON,
    Tags,
    browser_as,
    engaged,
    page,
    released,
    text,
)
from switches.tests.instances import report_acknowledgment, report_checks, report_version
from switches.tests.ramps import run_workers, start_ramp

FINANCE = "/switches/segment/finance/"
EFFECT = f"{FINANCE}effect/"
PART = {"HX-Request": "true"}


def read_effect(client, path=EFFECT):
    return text(page(client.get(path, headers=PART)))


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(0, "0/s"), (0.02, "< 0.1/s"), (3.44, "3.4/s"), (9.97, "10/s"), (1240.4, "1,240/s")],
)
def test_rate_is_shown_as_people_read_it(rate, shown):
    assert format_rate(rate) == shown


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
        page_text = read_effect(browser_as("viewer"))

        assert "effect unknown" in page_text
        assert "No instance is reporting, so the effect" in page_text
        assert "Applied by" not in page_text

    def test_straggler_behind_a_relay_is_named_with_the_relay(self, finance):
        report_version("core/a1", 0, db_now())
        Instance.objects.update(relay="eu-1")

        assert "core/a1 applies version 0, through relay eu-1 · reported" in read_effect(
            browser_as("viewer")
        )

    def test_straggler_is_named_with_what_it_says_and_when(self, finance):
        now = db_now()
        report_version("core/a1", finance.version - 1, now - timedelta(seconds=4))
        for name in ("core/a2", "core/a3", "core/a4"):
            report_version(name, finance.version, now)
            report_acknowledgment(name, finance, 41)

        page_text = read_effect(browser_as("viewer"))

        assert "Applied by 3 of 4 instances" in page_text
        assert "1 instance not yet confirmed on version" in page_text
        assert "It may still let traffic through" in page_text
        assert re.search(r"core/a1 applies version 0 · reported [45] s ago", page_text)
        assert "Confirmed by 3 instances after the commit: p50 41 ms, p99 41 ms" in page_text

    def test_confirmations_of_stopped_instances_are_told_apart(self, finance):
        for name in ("core/a1", "core/a2", "core/a3"):
            report_version(name, finance.version, db_now(), stopped=name == "core/a3")
            report_acknowledgment(name, finance, 41)

        page_text = read_effect(browser_as("viewer"))

        assert "Applied by all 2 reporting instances" in page_text
        assert (
            "Confirmed by 3 instances after the commit, 1 of which has stopped since:" in page_text
        )

    def test_all_of_them_are_told_as_what_they_say(self, finance):
        report_version("core/a1", finance.version, db_now())
        report_version("core/a2", finance.version, db_now())

        page_text = read_effect(browser_as("viewer"))

        assert "Applied by all 2 reporting instances" in page_text
        assert "has confirmed version 1, in which segment:finance is engaged" in page_text
        assert "blocks" not in page_text
        assert "may still" not in page_text

    def test_one_that_fell_silent_before_saying_so_is_told(self, finance):
        report_version("core/a1", finance.version, db_now())
        report_version("core/lost", 0, db_now() - timedelta(seconds=70))

        page_text = read_effect(browser_as("viewer"))

        assert "Applied by the only reporting instance; 1 stopped reporting" in page_text
        assert "1 stopped reporting in the last 5 minutes" in page_text
        assert "core/lost applies version 0 · reported 1 min ago" in page_text

    def test_instance_that_does_not_check_the_switch_is_no_proof(self, finance):
        now = db_now()
        for name in ("core/a1", "core/a2", "core/a3"):
            report_checks(name, "segment:finance", at=now - timedelta(minutes=4), per_second=5)
            report_version(name, finance.version, now - timedelta(minutes=4), stopped=True)
        client = browser_as("viewer")
        nobody = read_effect(client)
        report_version("web/b1", finance.version, now)
        other = read_effect(client)
        other_html = page(client.get(EFFECT, headers=PART))
        report_checks("web/b1", "segment:finance", at=now)
        checking = read_effect(client)

        assert "3 instances that checked this switch in the last hour have stopped." in nobody
        assert "Applied by the only reporting instance; no checks reported by it" in other
        assert "The instance reported no checks of this switch in the last hour." in other
        assert "3 others that checked it have stopped." in other
        assert "effect--all-heard-from" in other_html
        assert "effect--everybody" not in other_html
        assert "no checks reported" not in checking
        assert "The instance checked this switch in the last hour." in checking

    def test_ramping_switch_that_nobody_checked_does_not_warn_of_others(self):
        start_ramp()
        run_workers()
        report_version("web/b1", Switch.objects.get().version, db_now())

        page_text = read_effect(browser_as("viewer"))

        assert "Applied by the only reporting instance" in page_text
        assert "no checks reported by it" not in page_text
        assert "Instances that never check it count too." in page_text

    def test_released_switch_does_not_warn_that_nobody_checks_it(self, finance):
        now = db_now()
        report_checks("core/a1", "segment:finance", at=now, per_second=5)
        released()
        finance.refresh_from_db()
        report_version("core/a1", finance.version, now, stopped=True)
        report_version("web/b1", finance.version, now)

        page_text = read_effect(browser_as("viewer"))

        assert "no checks reported by it" not in page_text
        assert "1 other that checked it has stopped." in page_text

    def test_header_is_whole_only_when_nothing_speaks_against_it(self, finance):
        client = browser_as("viewer")

        def is_whole():
            (panel,) = Tags(page(client.get(EFFECT))).having("section", id="effect-page")
            return "effect--everybody" in panel["class"]

        report_version("core/a1", finance.version, db_now())
        assert is_whole()
        long_ago = db_now() - timedelta(hours=2)
        expired = {"expires_at": long_ago + timedelta(hours=1), "on_expiry": "release"}
        Episode.objects.update(engaged_at=long_ago, **expired)
        assert "Past its expiry" in read_effect(client)
        assert not is_whole()
        Episode.objects.update(on_expiry="hold")
        assert is_whole()
        report_version("core/lost", 0, db_now() - timedelta(seconds=70))
        assert not is_whole()

    def test_of_many_stragglers_twenty_are_named_and_the_rest_counted(self, finance):
        for number in range(40):
            report_version(f"core/a{number:02}", 0, db_now())

        on_the_page = read_effect(browser_as("viewer"))
        in_the_dialog = read_effect(browser_as("operator"), f"{EFFECT}?in=dialog")

        assert "core/a19" in on_the_page
        assert "core/a20" not in on_the_page
        assert "and 20 more" in on_the_page
        assert "core/a04" not in in_the_dialog
        assert "and 36 more" in in_the_dialog

    def test_release_is_not_told_as_flowing_before_it_is(self, finance):
        report_version("core/a1", finance.version, db_now())
        released()

        page_text = read_effect(browser_as("viewer"))

        assert "It may still block traffic" in page_text
        assert "Applied by 0 of 1 instance" in page_text

    def test_ramp_is_told_as_a_share(self, finance):
        Episode.objects.update(allow_percent=25)
        report_version("core/a1", 0, db_now())

        assert "It may still use the old share" in read_effect(browser_as("viewer"))

    @pytest.mark.parametrize(
        ("applied", "changed_ago", "pace"),
        [(0, timedelta(), "1s"), (1, timedelta(), "5s"), (0, timedelta(minutes=11), "5s")],
    )
    def test_looks_each_second_while_it_spreads_and_less_often_after(
        self, finance, applied, changed_ago, pace
    ):
        report_version("core/a1", applied, db_now())
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
        assert "Applied by 0 of 1,001 instances" in read_effect(browser_as("operator"))

    def test_looks_each_second_while_one_has_fallen_silent(self, finance):
        report_version("core/a1", finance.version, db_now())
        report_version("core/lost", 0, db_now() - timedelta(seconds=70))

        (panel,) = Tags(page(browser_as("viewer").get(EFFECT))).having("section", id="effect-page")

        assert panel["hx-trigger"] == "every 1s, refresh from:body"

    def test_page_has_it_without_a_script(self, finance):
        report_version("core/a1", finance.version - 1, db_now())

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

        report_version("core/a0", 0, db_now())
        few = queries()
        for number in range(30):
            report_version(f"core/a{number}", 0, db_now())

        assert queries() == few <= 10


@pytest.mark.django_db
def test_confirmation_claims_no_more_than_the_commit():
    form = {"scope": "segment", "key": "finance", "reason": REASON, "how_long": "24h"}
    report_version("core/a1", 0, db_now())

    page_text = text(page(browser_as("operator").post("/switches/engage/", form, headers=DIALOG)))

    assert "Committed. Applied by 0 of 1 instance" in page_text
    assert "segment:finance is engaged until" in page_text
    assert "is stopped" not in page_text


@pytest.mark.django_db
def test_page_of_a_released_switch_claims_no_traffic_while_the_global_one_is_engaged():
    now = db_now()
    engaged("segment:finance")
    released()
    report_version("core/a1", Switch.objects.get().version, now)
    engaged("global:all")

    page_text = text(page(browser_as("viewer").get(FINANCE)))

    assert "This switch is released. But global:all blocks all traffic." in page_text
    assert "has confirmed version 2, in which segment:finance is released" in page_text
    assert "flows" not in page_text
