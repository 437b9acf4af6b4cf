"""The example rules and route of `deploy/prometheus`, from alert to engaged switch."""

import re
import shutil
import subprocess

import pytest
import yaml

from controlplane.tests.deployment import DEPLOY
from switches.models import Episode
from switches.trips import alertmanager

FOLDER = DEPLOY / "prometheus"
RULES = FOLDER / "switches.rules.yaml"
TESTS = FOLDER / "switches.rules.test.yaml"
ROUTE = FOLDER / "alertmanager.yaml"


def read_rules():
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def read_firing():
    """Return labels and annotations of each alert that promtool expects, by its name."""
    (test,) = yaml.safe_load(TESTS.read_text())["tests"]
    return {
        one["alertname"]: (alert["exp_labels"], alert["exp_annotations"])
        for one in test["alert_rule_test"]
        for alert in one["exp_alerts"]
    }


def payload(name, labels, annotations, status="firing"):
    """Return the webhook's body as Alertmanager 0.25 sends it with the example's route."""
    labels = {"alertname": name, **labels}
    group = {key: labels[key] for key in ("alertname", alertmanager.SWITCH)}
    alert = {
        "status": status,
        "labels": labels,
        "annotations": annotations,
        "startsAt": "2026-11-27T15:05:45.318632558Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus:9090/graph",
        "fingerprint": "9a607ef3fe50bda3",
    }
    return {
        "receiver": "switchgear",
        "status": status,
        "alerts": [alert],
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "http://alertmanager:9093",
        "version": "4",
        "groupKey": '{}/{switchgear_switch!=""}:{}',
        "truncatedAlerts": 0,
    }


def test_every_example_rule_is_tested_and_names_a_switch():
    rules = read_rules()

    assert rules.keys() == read_firing().keys()
    assert all(rule["labels"][alertmanager.SWITCH] for rule in rules.values())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on PATH")
@pytest.mark.parametrize("command", [("check", RULES), ("test", TESTS)])
def test_promtool_accepts_the_rules_and_their_tests(command):
    verb, path = command
    done = subprocess.run(
        ["promtool", verb, "rules", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_route_sends_the_labelled_alerts_to_the_hook():
    document = yaml.safe_load(ROUTE.read_text())

    first, _ = document["route"]["routes"]
    receivers = {one["name"]: one for one in document["receivers"]}
    (hook,) = receivers[first["receiver"]]["webhook_configs"]
    assert first["matchers"] == [f'{alertmanager.SWITCH}!=""']
    assert first["continue"] is True
    assert re.fullmatch(r"https://[a-z.]+/api/v1/hooks/alertmanager", hook["url"])


@pytest.mark.django_db
@pytest.mark.parametrize("name", [*read_firing()])
def test_alert_of_the_example_engages_its_switch(machine, name):
    labels, annotations = read_firing()[name]

    response = machine.post("/hooks/alertmanager", payload(name, labels, annotations))

    (result,) = response.json()["results"]
    assert (response.status_code, result["tripped"]) == (200, True), result
    episode = Episode.objects.get()
    assert episode.switch_id == labels[alertmanager.SWITCH]
    assert episode.reason.startswith(f"{name}: {annotations['summary']}")
    assert episode.evidence["generatorURL"] == "http://prometheus:9090/graph"


@pytest.mark.django_db
def test_alert_can_not_engage_everything(machine):
    labels, annotations = read_firing()["CardPaymentsFail"]
    wider = {**labels, alertmanager.SWITCH: "global:all"}

    response = machine.post("/hooks/alertmanager", payload("CardPaymentsFail", wider, annotations))

    (result,) = response.json()["results"]
    assert (response.status_code, result["tripped"]) == (200, False)
    assert not Episode.objects.exists()


@pytest.mark.django_db
def test_resolved_alert_releases_nothing(machine):
    labels, annotations = read_firing()["CardPaymentsFail"]
    for status in ("firing", "resolved"):
        machine.post(
            "/hooks/alertmanager", payload("CardPaymentsFail", labels, annotations, status)
        )

    assert Episode.objects.get().ended_at is None
