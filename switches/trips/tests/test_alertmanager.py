"""Parsing of Alertmanager's messages and of machines' texts."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core import canonical, reasons
from switches.trips import alertmanager, texts


def alert(**more):
    return {
        "status": "firing",
        "labels": {"alertname": "ProviderDown", "switchgear_switch": "segment:finance"},
        "annotations": {"summary": "OpenAI answers 5xx", "description": "12 % over 10 minutes"},
        "startsAt": "2026-11-21T11:58:00.000Z",
        "generatorURL": "http://prometheus:9090/graph?g0.expr=up",
        "fingerprint": "c8f2a1",
        **more,
    }


def read(*alerts, **payload):
    return message(*alerts, **payload).alerts


def message(*alerts, **payload):
    return alertmanager.read_message({"version": "4", "alerts": list(alerts), **payload})


def test_alert_becomes_a_wish():
    (found,) = read(alert(), externalURL="http://alertmanager:9093", groupKey="{}:{}")

    assert (found.switch, found.fingerprint) == ("segment:finance", "c8f2a1")
    assert found.source == "alertmanager:ProviderDown"
    assert found.reason == "ProviderDown: OpenAI answers 5xx · 12 % over 10 minutes"
    assert (found.expires_in, found.resolved) == ("1h", False)
    assert found.evidence["labels"]["alertname"] == "ProviderDown"
    assert found.evidence["startsAt"] == "2026-11-21T11:58:00.000Z"
    assert found.evidence["externalURL"] == "http://alertmanager:9093"
    assert found.evidence["generatorURL"].startswith("http://prometheus")


def test_label_names_several_switches_once_each():
    label = {
        "switchgear_switch": " segment:a, feature:b ,,segment:a",
        "switchgear_expires_in": "2h",
    }

    found = read(alert(labels=label))

    assert [parsed.switch for parsed in found] == ["segment:a", "feature:b"]
    assert {parsed.expires_in for parsed in found} == {"2h"}
    assert {parsed.source for parsed in found} == {"alertmanager"}


def test_label_can_name_the_source():
    labels = {**alert()["labels"], "switchgear_source": "security"}

    assert read(alert(labels=labels))[0].source == "security"


@pytest.mark.parametrize("labels", [{}, None, [], {"switchgear_switch": ""}, {"alertname": 5}])
def test_alert_without_the_label_names_no_switch(labels):
    assert [parsed.switch for parsed in read(alert(labels=labels))] == [""]


def test_without_a_fingerprint_the_labels_are_one():
    first, same = read(alert(fingerprint=None), alert(fingerprint=""))
    (other,) = read(alert(fingerprint=None, labels={"switchgear_switch": "segment:finance"}))

    assert first.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize("alerts", [None, {}, "x", [1], [[]]])
def test_what_is_no_list_of_alerts_is_told(alerts):
    with pytest.raises(ValueError, match="list of alerts"):
        alertmanager.read_message({"alerts": alerts})


def test_huge_annotations_are_shortened_until_they_fit():
    (found,) = read(alert(annotations={f"a{n}": "é" * 9000 for n in range(20)}))

    assert texts.evidence_bytes(found.evidence) <= canonical.MAX_EVIDENCE_BYTES
    assert found.evidence["shortened"] is True
    assert found.evidence["labels"]["alertname"] == "ProviderDown"


def test_names_beyond_what_one_alert_may_list_are_left_out_quickly():
    names = [f"feature:f{number}" for number in range(8000)]
    labels = {"alertname": "Down", "switchgear_switch": ",".join(names)}
    notes = {"description": "é" * 60_000}
    begin = time.monotonic()

    found = message(alert(labels=labels, annotations=notes))

    assert time.monotonic() - begin < 1
    assert [parsed.switch for parsed in found.alerts] == names[:20]
    assert found.left_out == 7980
    assert found.left_switches == names[20:70]


def test_wishes_beyond_what_one_message_may_hold_are_left_out_and_counted():
    alerts = [alert(labels={"switchgear_switch": f"feature:f{number}"}) for number in range(120)]

    found = message(*[alert(labels={})] * 500, *alerts, alert(status="resolved"))

    assert sum(bool(parsed.switch) for parsed in found.alerts) == 100
    assert sum(not parsed.switch for parsed in found.alerts) == 100
    assert (found.left_out, found.left_switches[0]) == (20, "feature:f100")


def test_huge_group_key_costs_little():
    labels = [{"switchgear_switch": f"feature:f{number}"} for number in range(100)]
    begin = time.monotonic()

    found = read(*(alert(labels=label) for label in labels), groupKey="é" * 400_000)

    assert time.monotonic() - begin < 2
    assert len(found) == 100
    assert len(found[0].evidence["groupKey"]) <= 4000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_evidence_that_fits_is_kept_as_it_is(evidence):
    assert texts.fit_evidence(evidence) == json.loads(json.dumps(evidence))


@given(st.dictionaries(st.text(max_size=3000), st.text(max_size=3000), min_size=1, max_size=60))
def test_evidence_always_fits(evidence):
    grown = {name * 20: text * 20 for name, text in evidence.items()}

    assert texts.evidence_bytes(texts.fit_evidence(grown)) <= canonical.MAX_EVIDENCE_BYTES


@given(st.text(max_size=3000), st.text(min_size=1, max_size=120), st.text(min_size=1, max_size=200))
def test_every_reason_ends_up_one_that_may_stand(reason, source, fingerprint):
    assert (
        reasons.find_reason_problems(
            texts.complete_reason(reason, source=source, fingerprint=fingerprint)
        )
        == []
    )


@given(JSON, JSON, JSON)
def test_any_labels_and_annotations_can_be_read(labels, annotations, fingerprint):
    for found in read(alert(labels=labels, annotations=annotations, fingerprint=fingerprint)):
        assert len(found.switch) <= 131
        assert 0 < len(found.fingerprint) <= 200
        assert bool(found.switch) <= len(found.source) <= 120


@pytest.mark.parametrize(
    ("duration", "longest", "given"),
    [("1h", 1440, "1h"), ("30d", 1440, "24h"), ("90m", 60, "1h"), ("45s", 1, "45s")],
)
def test_expiry_is_capped_by_the_policy(duration, longest, given):
    assert texts.cap_expiry(duration, longest) == given


@pytest.mark.parametrize("duration", ["permanent", " Permanent ", "soon", "", "1.5h", "-1h", "0s"])
def test_what_is_no_duration_is_refused(duration):
    with pytest.raises(ValueError, match=r"duration|whole number"):
        texts.cap_expiry(duration, 60)
