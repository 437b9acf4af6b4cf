"""SLO documents: accepted fields, their meaning, and refusals."""

from decimal import Decimal

import pytest

from controlplane.core.errors import InvalidInput
from slo.objectives import documents


def validate_document(name="core-availability", **fields):
    return documents.validate(name, {"target": 0.999, **fields})


def validation_errors(name="core-availability", **fields):
    with pytest.raises(InvalidInput) as refused:
        validate_document(name, **fields)
    return refused.value.errors


def rule(**fields):
    return {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page", **fields}


PROMETHEUS = {
    "type": "prometheus",
    "url": "https://prometheus.example.com/team/",
    "good": 'sum(http_requests_total{code!~"5.."})',
    "total": "sum(http_requests_total)",
}


def test_target_alone_is_enough():
    assert validate_document() == {
        "service": "",
        "kind": "availability",
        "target": 0.999,
        "window_days": 30,
        "threshold_ms": None,
        "source": {"type": "push"},
        "rules": [
            {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"},
            {"long": "6h", "short": "30m", "burn_rate": 6, "severity": "ticket"},
        ],
        "min_events": 0,
        "actions": [],
        "description": "",
        "owner": "",
        "runbook_url": "",
        "slice_target": None,
        "metadata": {},
    }


def test_what_was_read_reads_the_same_again():
    once = validate_document(
        service="core",
        kind="latency",
        threshold_ms=300.5,
        source=PROMETHEUS,
        rules=[rule(burn_rate=14.4)],
        actions=[{"do": "hold_ramps"}, {"on": "any", "do": "trip", "switch": "experiment:x"}],
    )

    assert validate_document(**once) == once


def test_numbers_mean_exactly_what_was_written():
    found = documents.to_objective(validate_document(target=0.9995, rules=[rule(burn_rate=14.4)]))

    assert found.target == Decimal("0.9995")
    assert found.budget == Decimal("0.0005")
    assert found.rules[0].burn_rate == Decimal("14.4")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "Enter the share"),
        (0, "above 0 and below 1"),
        (1, "above 0 and below 1"),
        (99.9, "did you mean 0.999?"),
        ("0.999", "Must be a number, without quotes."),
        (True, "Must be a number, without quotes."),
        (0.9999999999, "At most 8 decimals."),
        (float("nan"), "Must be a number"),
    ],
)
def test_target_that_is_no_share_is_refused(target, message):
    assert message in validation_errors(target=target)["target"][0]


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a b", "a/b", "ä", "x" * 101, "a\n"])
def test_name_that_no_address_can_hold_is_refused(name):
    assert "name" in validation_errors(name)


@pytest.mark.parametrize("name", ["new", "thresholds"])
def test_name_of_a_page_of_its_own_is_refused(name):
    assert "Use another one" in validation_errors(name)["name"][0]


def test_everything_that_is_wrong_is_told_at_once():
    errors = validation_errors(kind="speed", window_days=0, min_events=-1, service="Core!", targt=1)

    assert errors.keys() == {"kind", "window_days", "min_events", "service", "targt"}
    assert errors["targt"] == ["Unknown; did you mean target?"]


def test_latency_has_a_threshold_and_nothing_else_has():
    assert validate_document(kind="latency", threshold_ms=3000)["threshold_ms"] == 3000
    assert "threshold_ms" in validation_errors(kind="latency")
    assert "threshold_ms" in validation_errors(kind="latency", threshold_ms=0)
    assert "threshold_ms" in validation_errors(kind="ratio", threshold_ms=3000)


def test_rule_that_could_never_fire_is_refused_with_the_largest_there_is():
    errors = validation_errors(target=0.95, rules=[rule(burn_rate=20)])

    assert errors["rules.0.burn_rate"] == [
        "This rule could never fire: at a target of 0.95 a burn rate never exceeds 20."
    ]
    assert validate_document(target=0.95, rules=[rule(burn_rate=19.999)])["rules"]


def test_usual_rules_that_could_never_fire_are_left_out():
    assert [one["burn_rate"] for one in validate_document(target=0.9)["rules"]] == [6]
    assert "never exceeds 2" in validation_errors(target=0.5)["rules"][0]


def test_empty_list_of_rules_is_no_rules():
    assert validate_document(rules=[])["rules"] == []


def test_short_window_is_a_twelfth_unless_said():
    found = validate_document(
        rules=[rule(long="1h", short=None), rule(long="3d", short=None, burn_rate=1)]
    )

    assert [one["short"] for one in found["rules"]] == ["5m", "6h"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"long": "90s"}, "long"),
        ({"long": "1 h"}, "long"),
        ({"long": 60}, "long"),
        ({"long": None}, "long"),
        ({"long": "31d"}, "long"),
        ({"short": "1h"}, "short"),
        ({"short": "60m"}, "short"),
        ({"short": "2h"}, "short"),
        ({"burn_rate": 0}, "burn_rate"),
        ({"burn_rate": -1}, "burn_rate"),
        ({"burn_rate": "14"}, "burn_rate"),
        ({"burn_rate": float("inf")}, "burn_rate"),
        ({"severity": "critical"}, "severity"),
        ({"windows": 1}, "windows"),
    ],
)
def test_rule_with_a_wrong_field_is_refused_and_the_field_named(fields, field):
    assert f"rules.0.{field}" in validation_errors(rules=[rule(**fields)])


def test_two_rules_that_look_at_the_same_are_refused():
    errors = validation_errors(rules=[rule(), rule(long="60m", severity="ticket")])

    assert errors == {"rules.1": ["Same windows as rule 0."]}


def test_period_is_the_longest_window():
    assert validate_document(window_days=7, rules=[rule(long="7d", short="1h", burn_rate=1)])[
        "rules"
    ]


def test_prometheus_is_told_with_its_queries_and_without_a_slash_at_the_end():
    assert validate_document(source=PROMETHEUS)["source"] == {
        **PROMETHEUS,
        "url": "https://prometheus.example.com/team",
    }


@pytest.mark.parametrize(
    "url",
    [
        None,
        "prometheus:9090",
        "ftp://prometheus/",
        "http://",
        "http://ada:secret@prometheus:9090",
        "http://ada@prometheus:9090",
        "http://prometheus:9090/?a=1",
        "http://prometheus:9090/#top",
        "http://prometheus:9090/?",
        "http://prometheus:99999",
        "http://prometheüs",
    ],
)
def test_address_of_a_prometheus_must_be_plain_and_without_secrets(url):
    assert "source.url" in validation_errors(source={**PROMETHEUS, "url": url})


def test_queries_of_a_prometheus_are_needed_and_others_refused():
    assert "source.good" in validation_errors(source={**PROMETHEUS, "good": " "})
    assert "source.bad" in validation_errors(source={**PROMETHEUS, "bad": "x"})
    assert "source.url" in validation_errors(source={"type": "push", "url": "http://x"})
    assert "source.type" in validation_errors(source={"type": "influx"})


def test_actions_are_told_with_all_they_mean():
    found = validate_document(
        service="core",
        actions=[
            {"on": "any", "do": "trip", "switch": "experiment:x", "expires_in": "90m"},
            {"do": "hold_ramps", "on_unknown": "act"},
        ],
    )

    assert found["actions"] == [
        {
            "on": "any",
            "do": "trip",
            "on_unknown": "nothing",
            "switch": "experiment:x",
            "expires_in": "90m",
        },
        {"on": "page", "do": "hold_ramps", "on_unknown": "act"},
    ]


@pytest.mark.parametrize(
    ("action", "field"),
    [
        ({"do": "page"}, "do"),
        ({"do": "trip"}, "switch"),
        ({"do": "trip", "switch": "global:all"}, "switch"),
        ({"do": "trip", "switch": "experiment:"}, "switch"),
        ({"do": "trip", "switch": ["experiment:x"]}, "switch"),
        ({"do": "trip", "switch": "experiment:x", "expires_in": "31d"}, "expires_in"),
        ({"do": "trip", "switch": "experiment:x", "expires_in": "permanent"}, "expires_in"),
        ({"do": "trip", "switch": "experiment:x", "on": "warning"}, "on"),
        ({"do": "hold_ramps", "on_unknown": "panic"}, "on_unknown"),
        ({"do": "hold_ramps", "switch": "experiment:x"}, "switch"),
    ],
)
def test_action_with_a_wrong_field_is_refused_and_the_field_named(action, field):
    assert f"actions.0.{field}" in validation_errors(service="core", actions=[action])


def test_ramps_are_held_only_of_a_service_that_is_named():
    assert (
        "Name the service" in validation_errors(actions=[{"do": "hold_ramps"}])["actions.0.do"][0]
    )


def test_same_action_twice_is_refused():
    assert "actions.1" in validation_errors(service="core", actions=[{"do": "hold_ramps"}] * 2)


@pytest.mark.parametrize("field", ["rules", "actions"])
@pytest.mark.parametrize("value", ["x", {}, [1], ["x"], [None], [[]], 7])
def test_what_is_no_list_of_objects_is_refused(field, value):
    assert any(path.startswith(field) for path in validation_errors(**{field: value}))


@pytest.mark.parametrize(
    "character", ["\x00", "\r", "\x7f", "\x9b", "\ud800", "\u202e", "\u2066", "\u200b", "\ufeff"]
)
def test_what_shows_an_approver_another_text_is_refused(character):
    text = f"a{character}b"

    errors = validation_errors(
        description=text,
        owner=text,
        runbook_url=f"https://wiki/{text}",
        source={**PROMETHEUS, "good": text},
    )

    assert set(errors) == {"description", "owner", "runbook_url", "source.good"}
    assert errors["owner"] == [f"Leave out control characters (U+{ord(character):04X})."]


@pytest.mark.parametrize("text", ["نمی\u200cخواهم", "👩\u200d🚒", "שלום\u200f!", "a\n\tb"])
def test_joiners_and_marks_that_scripts_need_are_kept(text):
    assert validate_document(description=text)["description"] == text


def test_half_a_surrogate_in_a_name_is_told_in_words_that_can_be_sent():
    errors = validation_errors(**{"a\ud800": 1})

    assert list(errors) == ["a\\ud800"]


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("slice_target", 1, "slice_target"),
        ("slice_target", 0, "slice_target"),
        ("slice_target", "most", "slice_target"),
        ("slice_target", 0.1234567891, "slice_target"),
        ("metadata", [], "metadata"),
        ("metadata", {"team": "a"}, "metadata.team"),
        ("metadata", {"labels": ["a"]}, "metadata.labels"),
        ("metadata", {"labels": {"team": 7}}, "metadata.labels.team"),
        ("metadata", {"display_name": 7}, "metadata.display_name"),
    ],
)
def test_invalid_slice_target_or_metadata_is_refused_by_field(field, value, path):
    with pytest.raises(InvalidInput) as refused:
        validate_document(**{field: value})

    assert list(refused.value.errors) == [path]


def test_slice_target_and_metadata_are_described_in_words():
    document = validate_document(slice_target=0.95, metadata={"labels": {"team": ["a", "b"]}})

    found = documents.describe_document(document)

    assert found["slice_target"] == "95 %"
    assert found["metadata"] == "labels: team=a b"
