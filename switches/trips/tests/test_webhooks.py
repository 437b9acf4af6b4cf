"""Alertmanager's webhook: each alert by itself, within limits."""

from datetime import timedelta

import pytest
from django.db import connection

from controlplane.accounts.models import Token
from controlplane.core.outbox.escalation import Escalation
from switches.models import Episode, Trip
from switches.trips import alertmanager, webhooks

pytestmark = pytest.mark.django_db
HOOK = "/hooks/alertmanager"


def firing(switch="feature:checkout", **more):
    labels = {"alertname": "ProviderDown", "switchgear_switch": switch, **more.pop("labels", {})}
    return {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": "OpenAI answers 5xx since 02:10"},
        "fingerprint": "c8f2a1",
        **more,
    }


def hook(machine, *alerts, **payload):
    return machine.post(HOOK, {"version": "4", "alerts": list(alerts), **payload})


def test_alert_trips_what_its_label_names(machine):
    response = hook(machine, firing(labels={"switchgear_expires_in": "2h"}), groupKey="{}")

    (result,) = response.json()["results"]
    assert response.status_code == 200
    assert (result["fingerprint"], result["switch"], result["tripped"]) == (
        "c8f2a1",
        "feature:checkout",
        True,
    )
    episode = Episode.objects.get()
    assert episode.reason == "ProviderDown: OpenAI answers 5xx since 02:10"
    assert episode.expires_at - episode.engaged_at == timedelta(hours=2)
    assert episode.evidence["annotations"] == {"summary": "OpenAI answers 5xx since 02:10"}


def test_alert_that_repeats_resolves_and_repeats_stops_once(machine):
    bodies = [
        hook(machine, firing(status=status)).json()["results"][0]
        for status in ("firing", "firing", "resolved", "resolved", "firing")
    ]

    assert [body["tripped"] for body in bodies] == [True, False, False, False, False]
    assert "stays engaged until someone releases it" in bodies[2]["why"]
    assert Episode.objects.get().ended_at is None


def test_whatever_is_wrong_with_an_alert_is_told_in_a_200_and_kept(machine):
    response = hook(
        machine,
        firing("nowhere:a"),
        firing("feature:ok", fingerprint="f2"),
        firing("feature:x", labels={"switchgear_expires_in": "permanent"}),
        firing("global:all"),
        firing("", fingerprint="f3"),
        {},
        truncatedAlerts=7,
    )

    results = response.json()["results"]
    assert response.status_code == 200
    assert [result["tripped"] for result in results] == [False, True, False, False, False, False]
    assert [result["switch"] for result in results][-2:] == [None, None]
    assert all(result["why"] for result in results)
    assert "can't be permanent" in results[2]["why"]
    assert response.json()["truncated"] == 7
    assert sorted(Trip.objects.values_list("switch", "outcome")) == [
        ("feature:ok", "tripped"),
        ("feature:x", "refused"),
        ("global:all", "refused"),
        ("nowhere:a", "refused"),
    ]


@pytest.mark.parametrize("count", [True, False, -1, "7", 1.5, None])
def test_truncated_alerts_that_are_no_count_are_answered_by_0(machine, count):
    response = hook(machine, firing(), truncatedAlerts=count)

    assert response.json()["truncated"] == 0
    assert type(response.json()["truncated"]) is int


def test_wrong_label_is_kept_once_however_often_it_repeats(machine):
    for _ in range(3):
        hook(machine, firing("nowhere:a"))

    assert Trip.objects.get().repeats == 2


@pytest.mark.parametrize("body", [{}, {"alerts": None}, {"alerts": {}}, {"alerts": ["x"]}])
def test_hook_without_alerts_is_400(machine, body):
    response = machine.post(HOOK, body)

    assert response.status_code == 400
    assert any(name.startswith("alerts") for name in response.json()["errors"])


def test_security_alerts_are_left_to_a_person(machine):
    (result,) = hook(machine, firing(labels={"alertname": "SecurityBreach"})).json()["results"]

    assert result["tripped"] is False
    assert Trip.objects.get().outcome == "person"


def test_body_may_have_a_mebibyte(machine):
    noted = firing(annotations={"description": "x" * 900_000})

    (result,) = hook(machine, noted).json()["results"]

    assert result["tripped"] is True
    assert hook(machine, firing(annotations={"d": "x" * (1 << 20)})).status_code == 413


def test_null_character_in_one_alert_keeps_none_from_being_heard(machine):
    odd = firing("feature:a", annotations={"summary": "core\x00dump \\\\u0000 \x00\x00"})

    response = hook(machine, odd, firing("feature:b", fingerprint="f2"))

    assert [result["tripped"] for result in response.json()["results"]] == [True, True]
    evidence = Episode.objects.get(switch="feature:a").evidence
    assert evidence["annotations"]["summary"] == "core\ufffddump \\\\u0000 \ufffd\ufffd"


def test_alerts_without_the_label_use_up_nothing(machine):
    others = [firing("", fingerprint=f"n{number}") for number in range(150)]

    body = hook(machine, *others, firing()).json()

    assert body["results"][-1]["tripped"] is True
    assert body["left_out"] == 0


def test_what_is_beyond_the_bound_is_kept_and_a_person_is_asked(machine, monkeypatch):
    monkeypatch.setattr(webhooks, "MAX_SECONDS", 60)
    monkeypatch.setattr(alertmanager, "MAX_ALERTS", 10)
    alerts = [firing(f"feature:f{number:03}", fingerprint=f"a{number}") for number in range(13)]

    body = hook(machine, *alerts).json()

    assert len(body["results"]) == 10
    assert body["left_out"] == 3
    row = Trip.objects.get(source="alertmanager")
    assert row.evidence["switches"] == ["feature:f010", "feature:f011", "feature:f012"]
    assert "At most 100 requests" in row.why
    question = Escalation.objects.get(subject=f"trip:{row.pk}")
    assert question.severity == "critical"
    hook(machine, *alerts)
    assert Trip.objects.get(source="alertmanager").repeats == 1


def test_what_does_not_fit_into_the_time_is_kept_and_a_person_is_asked(machine, monkeypatch):
    monkeypatch.setattr(webhooks, "MAX_SECONDS", -1)

    body = hook(machine, firing(), firing("feature:b")).json()

    assert [result["tripped"] for result in body["results"]] == [False, False]
    assert body["left_out"] == 2
    assert not Episode.objects.exists()
    assert Escalation.objects.filter(subject__startswith="trip:").count() == 1


def test_what_did_not_fit_goes_first_when_the_message_comes_again(machine, monkeypatch):
    first, second = firing("feature:a", fingerprint="a"), firing("feature:b", fingerprint="b")
    hook(machine, first)
    monkeypatch.setattr(webhooks, "MAX_SECONDS", -1)
    assert hook(machine, first).json()["left_out"] == 0
    monkeypatch.setattr(webhooks, "MAX_SECONDS", 60)

    hook(machine, first, second)

    rows = Trip.objects.exclude(source="alertmanager").order_by("id")
    assert list(rows.values_list("switch", "outcome")) == [
        ("feature:a", "tripped"),
        ("feature:b", "tripped"),
        ("feature:a", "duplicate"),
    ]


def test_dry_run_answers_for_each_alert_and_keeps_nothing(machine):
    alerts = [firing(f"feature:f{number}", fingerprint=f"a{number}") for number in range(3)]

    body = hook(machine, *alerts, firing(status="resolved"), dry_run=True).json()

    assert [result["tripped"] for result in body["results"]] == [True, True, True, False]
    assert {result["trip"] for result in body["results"]} == {None}
    assert body["dry_run"] is True
    assert not Trip.objects.exists()
    assert not Episode.objects.exists()


def test_idempotency_key_is_ignored(machine):
    first = machine.post(HOOK, {"alerts": [firing()]}, idempotency_key="k1")
    again = machine.post(HOOK, {"alerts": [firing("feature:b")]}, idempotency_key="k1")

    assert first.json()["results"][0]["tripped"] is True
    assert again.json()["results"][0]["tripped"] is True


def statements(call):
    found = []

    def note(execute, sql, *rest):
        found.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        call()
    return found


def test_only_what_may_stop_something_locks_the_publication(machine):
    lock = '"switches_publication" WHERE "switches_publication"."id" = %s LIMIT 21 FOR UPDATE'

    def locks(*alerts):
        return sum(lock in sql for sql in statements(lambda: hook(machine, *alerts)))

    assert locks(firing()) > 0
    assert locks(firing(), firing("nowhere:x"), firing("global:all"), firing("", status="x")) == 0
    assert locks(firing("segment:a", labels={"alertname": "DataLeak"})) == 0
    assert locks(firing(status="resolved")) == 0


def test_alert_that_the_token_may_not_stop_is_recorded_and_calls_people(machine):
    Token.objects.update(patterns=["experiment:*"])

    response = hook(machine, firing(), firing("experiment:ranking"))

    assert response.status_code == 200
    assert [one["tripped"] for one in response.json()["results"]] == [False, True]
    assert "limited to experiment:*" in Trip.objects.get(outcome="refused").why
    assert Escalation.objects.get().facts["once"] == "forbidden:token:ci"


def test_resolved_alert_of_another_switch_changes_nothing(machine):
    hook(machine, firing())
    Token.objects.update(patterns=["experiment:*"])

    response = hook(machine, firing(status="resolved"))

    (result,) = response.json()["results"]
    assert "limited to experiment:*" in result["why"]
    assert Trip.objects.get().resolved_at is None
