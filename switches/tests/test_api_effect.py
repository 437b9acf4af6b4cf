"""The API and shell output of effect and blast radius."""

import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import with_token
from switches.effect import SwitchEffect
from switches.management.commands import killswitch
from switches.models import Episode, Switch
from switches.tests.bulk_engagements import engage_alike
from switches.tests.instances import report_acknowledgment, report_checks, report_version

pytestmark = pytest.mark.django_db
FINANCE = "/switches/segment/finance"
EFFECT = {
    *("version", "applied", "instances", "stragglers", "stragglers_total"),
    *("silent_total", "measured", "p50_ms", "p99_ms", "requested_at", "committed_at"),
}


def engaged_and_half_applied(operator):
    operator.engage("segment:finance")
    finance, now = Switch.objects.get(), db_now()
    report_version("core/a1", finance.version, now)
    report_version("core/a2", finance.version - 1, now)
    report_acknowledgment("core/a1", finance, 41)


class TestEffect:
    def test_resource_tells_how_far_the_change_has_got(self, operator):
        engaged_and_half_applied(operator)

        effect = operator.get(f"{FINANCE}/").json()["effect"]

        assert set(effect) == EFFECT
        assert (effect["version"], effect["applied"], effect["instances"]) == (1, 1, 2)
        assert (effect["stragglers"], effect["stragglers_total"]) == (["core/a2"], 1)
        assert (effect["p50_ms"], effect["p99_ms"], effect["measured"]) == (41, 41, 1)
        assert effect["requested_at"] <= effect["committed_at"]

    def test_those_that_fell_silent_are_counted_apart(self, operator):
        engaged_and_half_applied(operator)
        report_version("core/lost", 0, db_now() - timedelta(minutes=1))

        effect = operator.get(f"{FINANCE}/").json()["effect"]

        assert (effect["instances"], effect["silent_total"]) == (2, 1)
        assert "core/lost" not in effect["stragglers"]

    def test_engage_never_answers_that_it_is_applied(self, operator):
        report_version("core/a1", 0, db_now())

        effect = operator.engage("segment:finance").json()["effect"]

        assert (effect["applied"], effect["stragglers"]) == (0, ["core/a1"])
        assert effect["p99_ms"] is None

    def test_switch_that_was_never_published_has_none(self, operator):
        operator.patch(f"{FINANCE}/", {"owner": "payments"})

        assert operator.get(f"{FINANCE}/").json()["effect"] is None
        assert operator.get("/switches/segment/unheard-of/").json()["effect"] is None

    def test_list_has_the_same_as_each_switch(self, operator):
        engaged_and_half_applied(operator)
        operator.engage("feature:beta")
        operator.patch("/switches/experiment/color/", {"owner": "growth"})

        rows = operator.get("/switches/").json()["results"]

        assert len(rows) == 3
        for row in rows:
            one = operator.get(f"/switches/{row['id'].replace(':', '/')}/").json()
            assert row["effect"] == one["effect"]

    def test_list_takes_no_query_per_switch(self, operator):
        def queries():
            with CaptureQueriesContext(connection) as caught:
                assert operator.get("/switches/").status_code == 200
            return len(caught)

        operator.engage("segment:s0")
        now = db_now()
        report_version("core/a0", 0, now)
        few = queries()
        engage_alike(Episode.objects.get(), [f"segment:s{number}" for number in range(1, 20)])
        for number in range(1, 20):
            report_version(f"core/a{number}", number, now)

        # Session, person, page; head with counts, names, delays.
        assert queries() == few <= 6


class TestShell:
    def test_status_as_json_is_the_resource(self, operator, capsys):
        engaged_and_half_applied(operator)

        call_command("killswitch", "status", "--segment", "finance", "--json")

        assert json.loads(capsys.readouterr().out) == operator.get(f"{FINANCE}/").json()

    def test_list_as_json_has_the_effects(self, operator, capsys):
        engaged_and_half_applied(operator)

        call_command("killswitch", "list", "--json")

        (row,) = json.loads(capsys.readouterr().out)
        assert (row["effect"]["applied"], row["effect"]["instances"]) == (1, 2)

    def test_status_says_it_in_a_sentence(self, operator, capsys):
        engaged_and_half_applied(operator)

        call_command("killswitch", "status", "--segment", "finance")

        output = capsys.readouterr().out
        assert "version 1 is committed, applied by 1 of 2 instances; not by core/a2\n" in output
        assert "confirmed by 1 instance after the commit: p50 41" in output

    def test_engage_with_nobody_there_claims_nothing(self, capsys):
        call_command("killswitch", "engage", "--segment", "a", "--reason", "ledger rows missing")

        output = capsys.readouterr().out
        assert "no instance is reporting, so the effect is unknown" in output
        assert "the effect is unknown" in output
        assert "0 instances" not in output

    @pytest.mark.parametrize(
        ("there", "text"),
        [
            ([1], "applied by the only reporting instance\n"),
            ([1, 1], "applied by all 2 reporting instances\n"),
            ([0], "applied by 0 of 1 instance; not by core/a0\n"),
            ([0] * 7, "core/a2, core/a3, core/a4 and 2 more\n"),
        ],
    )
    def test_status_counts_as_people_do(self, operator, capsys, there, text):
        operator.engage("segment:finance")
        for number, version in enumerate(there):
            report_version(f"core/a{number}", version, db_now())

        call_command("killswitch", "status", "--segment", "finance")

        assert text in capsys.readouterr().out

    def test_status_tells_who_fell_silent_and_that_its_time_is_up(self, operator, capsys):
        operator.engage("feature:beta", on_expiry="release", expires_in="1h")
        long_ago = db_now() - timedelta(hours=2)
        Episode.objects.update(engaged_at=long_ago, expires_at=long_ago + timedelta(hours=1))
        report_version("core/a1", 1, db_now())
        report_version("core/lost", 0, db_now() - timedelta(minutes=1))

        call_command("killswitch", "status", "--feature", "beta")

        output = capsys.readouterr().out
        assert "1 stopped reporting in the last 5 minutes without confirming" in output
        assert "past its expiry: instances may allow traffic on their own" in output


class TestPreview:
    def preview(self, caller, path=FINANCE):
        response = caller.get(f"{path}/preview")
        assert response.status_code == 200, response.content
        return response.json()

    def test_key_nobody_knows_is_empty_and_stays_unregistered(self, operator):
        assert self.preview(operator, "/switches/feature/never") == {
            "switch": "feature:never",
            "instances": [],
            "instances_total": 0,
            "services": [],
            "tokens": 0,
            "calls_per_second": 0,
            "last_seen": None,
            "overlapping": [],
            "rules": [],
            "dependents": [],
        }
        assert not Switch.objects.exists()

    def test_names_instances_services_and_what_overlaps(self, operator):
        now = db_now()
        report_checks(
            "core/a1", "segment:finance", "feature:beta", at=now, per_second=10, blocked=60
        )
        operator.engage("feature:beta", reason="ledger rows are missing")

        found = self.preview(operator)

        (instance,), (service,) = found["instances"], found["services"]
        assert (instance["id"], instance["service"]) == ("core/a1", "core")
        assert instance["calls_per_second"] == pytest.approx(10, rel=0.1)
        assert instance["blocked_per_second"] == pytest.approx(1, rel=0.1)
        assert instance["relay"] is None
        assert set(service) == {"service", "instances", "calls_per_second", "last_seen"}
        assert found["last_seen"] == instance["last_seen"]
        assert found["overlapping"] == [
            {
                "id": "feature:beta",
                "state": "engaged",
                "reason": "ledger rows are missing",
                "allow_percent": 0,
            }
        ]

    def test_token_is_counted_by_itself(self, operator):
        report_checks("token:ci", "segment:finance", at=db_now(), per_second=10)

        found = self.preview(operator)

        assert (found["tokens"], found["instances_total"], found["services"]) == (1, 1, [])
        assert found["instances"][0]["id"] == "token:ci"

    @pytest.mark.parametrize("path", ["/switches/galaxy/x", "/switches/global/x"])
    def test_impossible_switch_is_400(self, operator, path):
        assert operator.get(f"{path}/preview").status_code == 400

    def test_token_without_the_scope_is_refused(self):
        assert with_token("audit:read").get(f"{FINANCE}/preview").status_code == 403

    def test_trailing_slash_leads_there(self, operator):
        assert operator.get(f"{FINANCE}/preview/").status_code in {301, 308}

    def test_last_minutes_rate_fades(self, operator):
        report_checks(
            "core/a1", "segment:finance", at=db_now() - timedelta(minutes=5), per_second=10
        )

        found = self.preview(operator)

        assert (found["instances_total"], found["calls_per_second"]) == (1, 0)

    def test_status_names_nobody_when_no_straggler_is_known(self):
        effect = SwitchEffect(
            version=1,
            applied=0,
            instances=1,
            stragglers=(),
            silent_total=0,
            p50_ms=None,
            p99_ms=None,
            measured=0,
            measured_stopped=0,
            requested_at=None,
            committed_at=None,
            past_expiry=False,
        )

        assert killswitch._describe_applied(effect) == ", applied by 0 of 1 instance"

    def test_engage_says_that_a_rule_to_be_overridden_does_not_exist(self, capsys):
        options = ["--reason", "ledger rows missing", "--break-glass", "no-such-rule"]

        call_command("killswitch", "engage", "--segment", "a", *options)

        assert "No safety rule is named 'no-such-rule'" in capsys.readouterr().err
