"""Engaging under safety rules: refusals by name, and overrides."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.core.management import call_command

from controlplane.core.actors import system_actor
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from switches.models import Episode, Publication
from switches.rules.break_glass import SafetyRefused
from switches.rules.tests.factories import WHY, break_glass_naming, create_rule
from switches.services.engage import engage

pytestmark = pytest.mark.django_db


def lasts(switch):
    moments = (datetime.fromisoformat(switch[name]) for name in ("engaged_at", "expires_at"))
    start, end = moments
    return end - start


def test_refusal_is_409_with_the_rule_and_what_would_pass(operator):
    create_rule("exclusive", "segment:a", "segment:b", name="한 번에 하나")
    operator.engage("segment:a")
    version = Publication.objects.get().version

    response = operator.engage("segment:b")

    problem = response.json()
    assert response.status_code == 409
    assert response["Content-Type"] == "application/problem+json"
    assert problem["rule"] == "한 번에 하나"
    assert problem["would_pass"] == "Release segment:a first, then engage segment:b."
    assert [one["rule"] for one in problem["refusals"]] == ["한 번에 하나"]
    assert "한 번에 하나" in problem["detail"]
    assert Publication.objects.get().version == version
    assert operator.get("/switches/segment/b/").json()["state"] == "released"


def test_every_rule_in_the_way_is_told(operator):
    create_rule("exclusive", "segment:*", name="one")
    create_rule("at_most", "*", name="few", n=1)
    operator.engage("segment:a")

    problem = operator.engage("segment:b").json()

    assert [one["rule"] for one in problem["refusals"]] == ["few", "one"]


def test_at_most_lets_so_many_through_and_ramping_counts(operator):
    create_rule("at_most", "segment:*", n=2)
    operator.engage("segment:a")
    Episode.objects.update(allow_percent=25)

    assert operator.engage("segment:b").status_code == 200
    assert operator.engage("segment:c").status_code == 409
    assert operator.engage("feature:c").status_code == 200


def test_global_switch_is_engaged_whatever_patterns_say(operator):
    create_rule("at_most", "segment:*", n=1)
    operator.engage("segment:a")

    assert operator.engage("global:all").status_code == 200


def test_engaged_switch_answers_with_its_episode_not_with_a_rule(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")

    assert "episode" in operator.engage("segment:a").json()


def test_trip_is_refused_like_everybody(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")

    with pytest.raises(SafetyRefused) as refused:
        engage(
            scope="segment",
            key="b",
            reason="p95 above 8 s since 02:10",
            expires_in="1h",
            permission="switches:trip",
            actor=system_actor("monitor"),
            now=db_now(),
        )

    assert refused.value.extra["rule"] == "exclusive"


@pytest.mark.parametrize(
    ("kind", "policy", "expected"),
    [
        ("protected", "release", 400),
        ("protected", "ramp", 400),
        ("protected", "hold", 200),
        ("at_least_one", "release", 400),
        ("at_least_one", "ramp", 200),
    ],
)
def test_policy_at_expiry_that_a_rule_forbids_is_refused(operator, kind, policy, expected):
    create_rule(kind, "feature:*")

    response = operator.engage("feature:a", on_expiry=policy)

    assert response.status_code == expected
    if expected == 400:
        assert kind in response.json()["errors"]["on_expiry"][0]


def test_default_of_a_protected_feature_is_to_hold(operator):
    create_rule("protected", "feature:a")

    assert operator.engage("feature:a").json()["on_expiry"] == "hold"
    assert operator.engage("feature:b").json()["on_expiry"] == "ramp"


def test_broken_glass_engages_shortly_loudly_and_leaves_a_review(operator):
    create_rule("exclusive", "feature:*", name="one at a time")
    operator.engage("feature:a")

    response = operator.engage(
        "feature:b",
        expires_in="7d",
        on_expiry="release",
        break_glass=break_glass_naming("one at a time"),
    )

    switch = response.json()
    assert response.status_code == 200
    assert lasts(switch) == timedelta(hours=4)
    assert switch["on_expiry"] == "hold"
    assert switch["broke_glass"]["rules"] == ["one at a time"]
    assert switch["broke_glass"]["reason"] == WHY
    assert (switch["review"]["kind"], switch["review"]["expires_at"]) == (
        "break_glass_review",
        None,
    )
    (review,) = Approval.objects.filter(kind="break_glass_review")
    assert (review.state, review.reason, review.target) == ("pending", WHY, "feature:b")
    assert Episode.objects.get(switch_id="feature:b").broke_glass["rule"] == "one at a time"
    (row,) = operator.get("/audit/", {"action": "switch.engaged", "target": "feature:b"}).json()[
        "results"
    ]
    assert row["after"]["broke_glass"]["rules"] == ["one at a time"]
    assert Escalation.objects.filter(subject__endswith=f":{review.pk}").exists()


def test_broken_glass_is_announced_as_critical(operator, settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")
    episode = operator.engage("segment:b", break_glass=break_glass_naming("exclusive")).json()

    message = OutboxMessage.objects.filter(event="switch.broke_glass").first()
    assert message is not None
    assert message.severity == "critical"
    assert message.payload["rule"] == "exclusive"
    assert episode["id"] == message.payload["switch"]


def test_shorter_wish_stays_as_it_is(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")

    switch = operator.engage(
        "segment:b", expires_in="1h", break_glass=break_glass_naming("exclusive")
    ).json()

    assert lasts(switch) == timedelta(hours=1)


def test_nothing_is_permanent_against_a_rule(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")

    response = operator.engage(
        "segment:b", expires_in="permanent", break_glass=break_glass_naming("exclusive")
    )

    switch = response.json()
    assert response.status_code == 200
    assert lasts(switch) == timedelta(hours=4)
    assert "not permanently" in switch["notice"]
    assert "approval" not in switch
    assert not Approval.objects.filter(kind="permanent").exists()


def test_name_of_the_rule_is_read_as_people_type_it(operator):
    create_rule("exclusive", "segment:*", name="café")
    operator.engage("segment:a")

    response = operator.engage("segment:b", break_glass=break_glass_naming(" cafe\u0301 "))

    assert response.json()["broke_glass"]["rules"] == ["café"]


def test_wrong_name_is_409_with_the_right_one(operator):
    create_rule("exclusive", "segment:*", name="one")
    operator.engage("segment:a")

    response = operator.engage("segment:b", break_glass=break_glass_naming("two-person"))

    assert response.status_code == 409
    assert response.json()["rule"] == "one"
    assert "names two-person" in response.json()["detail"]


def test_all_rules_in_the_way_have_to_be_named(operator):
    create_rule("exclusive", "segment:*", name="one")
    create_rule("at_most", "*", name="few", n=1)
    operator.engage("segment:a")

    partly = operator.engage("segment:b", break_glass=break_glass_naming("one"))
    wholly = operator.engage("segment:b", break_glass=break_glass_naming("one", "few"))

    assert (partly.status_code, partly.json()["rule"]) == (409, "few")
    assert [one["rule"] for one in partly.json()["refusals"]] == ["few"]
    assert wholly.status_code == 200
    assert wholly.json()["broke_glass"]["rules"] == ["few", "one"]


def test_glass_that_nothing_asks_for_stays_whole(operator):
    response = operator.engage(
        "segment:a", expires_in="7d", break_glass=break_glass_naming("whatever")
    )

    switch = response.json()
    assert response.status_code == 200
    assert lasts(switch) == timedelta(days=7)
    assert "broke_glass" not in switch
    assert not Approval.objects.exists()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "break_glass.rule"),
        ({"rule": "", "reason": WHY}, "break_glass.rule"),
        ({"rule": [], "reason": WHY}, "break_glass.rule"),
        ({"rule": 5, "reason": WHY}, "break_glass.rule"),
        ({"rule": ["one", 5], "reason": WHY}, "break_glass.rule"),
        ({"rule": "one"}, "break_glass.reason"),
        ({"rule": "one", "reason": "urgent"}, "break_glass.reason"),
        ({"rule": "one", "reason": 5}, "break_glass.reason"),
        ({"rule": "one", "reason": "down \u202e since 02:10"}, "break_glass.reason"),
    ],
)
def test_wrong_break_glass_is_named(operator, given, field):
    response = operator.engage("segment:a", break_glass=given)

    assert response.status_code == 400
    assert field in response.json()["errors"]


def test_dry_run_refuses_and_breaks_nothing(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")

    refused = operator.engage("segment:b", dry_run=True)
    broken = operator.engage("segment:b", dry_run=True, break_glass=break_glass_naming("exclusive"))

    assert refused.status_code == 409
    assert (broken.status_code, broken.json()["dry_run"]) == (200, True)
    assert broken.json()["broke_glass"]["rules"] == ["exclusive"]
    assert not Approval.objects.exists()
    assert Episode.objects.count() == 1


def test_repeat_breaks_the_glass_once(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")
    sent = {"break_glass": break_glass_naming("exclusive"), "headers": {"Idempotency_Key": "k-1"}}

    first, second = (operator.engage("segment:b", **sent) for _ in range(2))

    assert first.json() == second.json()
    assert second["Idempotent-Replayed"] == "true"
    assert Approval.objects.count() == 1


def test_token_breaks_the_glass_and_its_owner_cannot_sign(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")
    owner = person("approver", "owner")
    program = with_token("switches:write", "switches:read", owner=owner)

    review = program.engage("segment:b", break_glass=break_glass_naming("exclusive")).json()[
        "review"
    ]

    assert signed_in(owner).post(f"/approvals/{review['id']}/approve").status_code == 403
    assert as_role("approver").post(f"/approvals/{review['id']}/approve").status_code == 200


def test_who_may_not_engage_may_not_break_glass(operator):
    create_rule("exclusive", "segment:*")
    operator.engage("segment:a")

    response = as_role("viewer").engage("segment:b", break_glass=break_glass_naming("exclusive"))

    assert response.status_code == 403


def test_shell_is_refused_with_the_option_that_goes_on(operator, capsys):
    create_rule("exclusive", "segment:*", name="one at a time")
    operator.engage("segment:a")
    command = ("killswitch", "engage", "--segment", "b", "--reason", WHY)

    with pytest.raises(Exception, match="--break-glass 'one at a time'"):
        call_command(*command)
    call_command(*command, "--break-glass", "one at a time")

    assert "waits for signature" in capsys.readouterr().out
    review = Approval.objects.get(kind="break_glass_review")
    assert review.requested_by.startswith("shell:")


def test_shell_tells_what_is_otherwise_than_was_asked(operator, capsys):
    create_rule("exclusive", "segment:*", name="one")
    waits = "permanent waits for approval: request"
    command = ("--reason", WHY, "--for", "permanent")

    call_command("killswitch", "engage", "--segment", "a", *command)
    assert waits in capsys.readouterr().out
    call_command("killswitch", "extend", "--segment", "a", *command, "--json")
    assert waits not in capsys.readouterr().out
    call_command("killswitch", "engage", "--segment", "b", *command, "--break-glass", "one")
    output = capsys.readouterr().out

    assert waits not in output
    assert "not permanently" in output


def test_preview_tells_what_would_be_refused(operator):
    create_rule("exclusive", "segment:*", name="one")
    create_rule("at_least_one", "segment:*", name="some")
    operator.engage("segment:a")

    (engaging,) = operator.get("/switches/segment/b/preview").json()["rules"]
    (releasing,) = operator.get("/switches/segment/a/preview").json()["rules"]

    assert (engaging["action"], engaging["rule"]) == ("engage", "one")
    assert engaging["would_pass"].startswith("Release segment:a first")
    assert (releasing["action"], releasing["rule"]) == ("release", "some")
    assert operator.get("/switches/feature/x/preview").json()["rules"] == []
