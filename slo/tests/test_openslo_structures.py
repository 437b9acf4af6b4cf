"""OpenSLO documents of the structures in use: time slices, threshold metrics, names and labels."""

import pytest
import yaml

from slo.objectives.openslo import export

from .test_openslo import SERVER, parse_errors, parse_texts

SLICES = """
apiVersion: openslo/v1
kind: SLO
metadata:
  name: login
  displayName: Login works
  labels: {team: identity, tier: [one, two]}
  annotations: {example.com/dashboard: "42"}
spec:
  description: People get in.
  service: web
  indicator:
    metadata: {name: login-time, displayName: Minutes with working logins}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: 'sum(logins{ok="1"})'}}}
        total: {metricSource: {type: Prometheus, spec: {query: sum(logins)}}}
  timeWindow: [{duration: 4w, isRolling: true}]
  budgetingMethod: Timeslices
  objectives:
    - {displayName: Strict, op: gt, target: 0.995, timeSliceTarget: 0.99, timeSliceWindow: 1m}
    - {displayName: Contract, target: 0.99, timeSliceTarget: 0.95, timeSliceWindow: 1m}
"""
OTHER_SOURCE = """
metricSource: {type: Any, spec: {query: Any}}
"""


def changed_slices(**changes):
    """Return `SLICES` with other fields of `spec`."""
    document = yaml.safe_load(SLICES)
    document["spec"] |= changes
    return yaml.safe_dump(document)


def threshold(query, value=0.5, op="lte", **source):
    """Return an SLO of a threshold metric."""
    metric = {"type": "Prometheus", "spec": {"query": query} if query else {}, **source}
    indicator = {"metadata": {"name": "i"}, "spec": {"thresholdMetric": {"metricSource": metric}}}
    return changed_slices(
        indicator=indicator,
        budgetingMethod="Occurrences",
        objectives=[{"displayName": "Fast", "op": op, "value": value, "target": 0.99}],
        timeWindow=[{"duration": "2w", "isRolling": True}],
    )


def test_time_slices_count_good_minutes():
    parsed = parse_texts(SLICES)

    first, second = parsed.slos["login"], parsed.slos["login-contract"]
    assert (first["target"], first["slice_target"]) == (0.995, 0.99)
    assert (second["target"], second["slice_target"]) == (0.99, 0.95)


def test_names_and_labels_are_kept():
    metadata = parse_texts(SLICES).slos["login"]["metadata"]

    assert metadata == {
        "display_name": "Login works",
        "labels": {"team": "identity", "tier": ["one", "two"]},
        "annotations": {"example.com/dashboard": "42"},
        "indicator": "login-time",
        "indicator_display_name": "Minutes with working logins",
        "objective": "Strict",
    }


@pytest.mark.parametrize("text", [SLICES, threshold("request_duration_seconds")])
def test_export_of_an_import_is_the_same_slo(text):
    parsed = parse_texts(text)

    exported = export.export_documents(parsed.slos)
    again = parse_texts(export.to_yaml(exported))

    assert again.slos == parsed.slos
    assert export.export_documents(again.slos) == exported


def test_export_has_the_names_and_labels_in_their_places():
    source, first, _ = export.export_documents(parse_texts(SLICES).slos)

    assert source["kind"] == "DataSource"
    assert first["metadata"]["labels"] == {"team": "identity", "tier": ["one", "two"]}
    assert first["metadata"]["displayName"] == "Login works"
    assert first["metadata"]["annotations"]["example.com/dashboard"] == "42"
    assert first["spec"]["description"] == "People get in."
    assert first["spec"]["indicator"]["metadata"] == {
        "name": "login-time",
        "displayName": "Minutes with working logins",
    }
    assert first["spec"]["budgetingMethod"] == "Timeslices"
    assert first["spec"]["objectives"] == [
        {
            "displayName": "Strict",
            "target": 0.995,
            "timeSliceTarget": 0.99,
            "timeSliceWindow": "1m",
        }
    ]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        # The structures of the examples that the OpenSLO repository has.
        ({"budgetingMethod": "RatioTimeslices"}, "documents.0.spec.budgetingMethod"),
        (
            {"timeWindow": [{"duration": "1m", "isRolling": False}]},
            "documents.0.spec.timeWindow.duration",
        ),
        (
            {"objectives": [{"target": 0.9, "timeSliceTarget": 0.9, "timeSliceWindow": "5m"}]},
            "documents.0.spec.objectives.0.timeSliceWindow",
        ),
        (
            {"objectives": [{"target": 0.9, "timeSliceWindow": "1m"}]},
            "documents.0.spec.objectives.0.timeSliceTarget",
        ),
        (
            {"objectives": [{"target": 0.9, "timeSliceTarget": 2, "timeSliceWindow": "1m"}]},
            "documents.0.spec.objectives.0: slice_target",
        ),
    ],
)
def test_unsupported_slices_are_refused_by_field(changes, place):
    assert list(parse_errors(changed_slices(**changes))) == [place]


def test_weekly_slices_of_an_unknown_source_are_imported_with_remarks():
    metric = yaml.safe_load(OTHER_SOURCE)
    indicator = {
        "metadata": {"name": "i"},
        "spec": {"ratioMetric": {"good": metric, "total": metric}},
    }
    calendar = {"startTime": "2026-01-01 12:00:00", "timeZone": "Asia/Seoul"}
    window = [{"duration": "1w", "isRolling": False, "calendar": calendar}]
    parsed = parse_texts(changed_slices(indicator=indicator, timeWindow=window))

    assert parsed.slos["login"]["source"] == {"type": "push"}
    assert parsed.slos["login"]["window_days"] == 7
    assert any("any is not supported as a source" in text for text in parsed.remarks)
    assert any("calendar window" in text for text in parsed.remarks)


def test_slice_fields_of_occurrences_are_ignored_with_a_remark():
    parsed = parse_texts(changed_slices(budgetingMethod="Occurrences"))

    assert parsed.slos["login"]["slice_target"] is None
    assert any("timeSliceTarget and timeSliceWindow" in text for text in parsed.remarks)


@pytest.mark.parametrize(
    ("query", "value", "good", "total", "kind", "threshold_ms"),
    [
        (
            "request_duration_seconds",
            0.5,
            'sum(request_duration_seconds_bucket{le="0.5"})',
            "sum(request_duration_seconds_count)",
            "latency",
            500,
        ),
        (
            'request_duration_seconds_bucket{job="shop"}',
            2,
            'sum(request_duration_seconds_bucket{job="shop", le=~"2([.]0)?"})',
            'sum(request_duration_seconds_count{job="shop"})',
            "latency",
            2000,
        ),
        (
            "queue_wait_ms",
            250,
            'sum(queue_wait_ms_bucket{le=~"250([.]0)?"})',
            "sum(queue_wait_ms_count)",
            "latency",
            250,
        ),
        (
            "answer_tokens",
            1000,
            'sum(answer_tokens_bucket{le=~"1000([.]0)?"})',
            "sum(answer_tokens_count)",
            "ratio",
            None,
        ),
    ],
)
def test_threshold_of_a_histogram_counts_its_bucket(query, value, good, total, kind, threshold_ms):
    parsed = parse_texts(threshold(query, value))

    one = parsed.slos["login"]
    assert one["source"] == {"type": "prometheus", "url": SERVER, "good": good, "total": total}
    assert (one["kind"], one["threshold_ms"]) == (kind, threshold_ms)
    assert any("must have a bucket" in text for text in parsed.remarks)


def test_threshold_of_an_unknown_source_is_a_pushed_latency():
    parsed = parse_texts(threshold("", 500, "lt", type="Any"))

    one = parsed.slos["login"]
    assert (one["kind"], one["threshold_ms"], one["source"]) == ("latency", 500, {"type": "push"})
    assert sum("milliseconds" in text or "lt was replaced" in text for text in parsed.remarks) == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (threshold("x", op="gt"), "documents.0.spec.objectives.0.op"),
        (threshold("x", value="fast"), "documents.0.spec.objectives.0.value"),
        *(
            (
                threshold(query),
                "documents.0.spec.indicator.spec.thresholdMetric.metricSource.spec.query",
            )
            for query in (
                "histogram_quantile(0.95, x_bucket)",
                "rate(x_bucket[5m])",
                'x_bucket{le="1"}',
                "",
            )
        ),
    ],
)
def test_threshold_that_counts_no_events_is_refused_by_field(text, place):
    assert list(parse_errors(text)) == [place]
