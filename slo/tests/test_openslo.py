"""OpenSLO v1 documents: their meaning here, and a remark for everything left out."""

import pytest
import yaml

from controlplane.core.errors import InvalidInput
from slo.objectives import spec_import
from slo.objectives.openslo import parser

SLO = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: checkout, displayName: Checkout}
spec:
  description: Orders that were taken
  service: shop
  indicator:
    metadata: {name: checkout-ratio}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: 'sum(orders{ok="1"})'}}}
        total: {metricSource: {type: Prometheus, spec: {query: sum(orders)}}}
  timeWindow: [{duration: 4w, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{displayName: Taken, target: 0.995}]
"""
SERVER = "http://prom:9090"


def parse_texts(*texts, server=SERVER):
    return parser.parse_documents(
        [one for text in texts for one in yaml.safe_load_all(text)], server=server
    )


def parse_errors(*texts, server=SERVER):
    with pytest.raises(InvalidInput) as refused:
        parse_texts(*texts, server=server)
    return refused.value.errors


def changed(path, value, text=SLO):
    """Return the SLO with another value at a path; None deletes it."""
    document = yaml.safe_load(text)
    *above, last = path.split(".")
    inside = document
    for key in above:
        inside = inside[int(key) if key.isdigit() else key]
    if value is None:
        del inside[last]
    else:
        inside[last] = value
    return yaml.safe_dump(document)


def policy(**condition):
    """Return an alert policy inside an SLO."""
    said = {
        "kind": "burnrate",
        "op": "gt",
        "threshold": 14,
        "lookbackWindow": "1h",
        **condition,
    }
    severity = said.pop("severity", "page")
    inside = {
        "kind": "AlertCondition",
        "metadata": {"name": "fast"},
        "spec": {"severity": severity, "condition": said},
    }
    return {"kind": "AlertPolicy", "metadata": {"name": "p"}, "spec": {"conditions": [inside]}}


RATIO = "spec.indicator.spec.ratioMetric"


def test_ratio_of_a_prometheus_is_an_slo_that_asks_it():
    parsed = parse_texts(SLO)

    one = parsed.slos["checkout"]
    assert (one["service"], one["kind"], one["target"], one["window_days"]) == (
        *("shop", "ratio"),
        *(0.995, 28),
    )
    assert one["description"] == "Orders that were taken"
    assert one["source"] == {
        "type": "prometheus",
        "url": SERVER,
        "good": 'sum(orders{ok="1"})',
        "total": "sum(orders)",
    }
    assert [rule["burn_rate"] for rule in one["rules"]] == [14, 6]
    assert parsed.remarks == (
        "documents.0: It has no alert policies; the default rules were used.",
    )


def test_bad_events_are_taken_from_all_of_them():
    text = changed(
        f"{RATIO}.bad", yaml.safe_load(SLO)["spec"]["indicator"]["spec"]["ratioMetric"]["good"]
    )
    text = changed(f"{RATIO}.good", None, text)

    source = parse_texts(text).slos["checkout"]["source"]

    assert source["good"] == '(sum(orders)) - ((sum(orders{ok="1"})) or vector(0))'


def test_parts_may_be_documents_of_their_own():
    indicator = yaml.safe_load(SLO)["spec"]["indicator"]
    text = changed("spec.indicatorRef", "checkout-ratio", changed("spec.indicator", None))
    text = changed("spec.alertPolicies", [{"alertPolicyRef": "p"}], text)
    sli = yaml.safe_dump({"apiVersion": "openslo/v1", "kind": "SLI", **indicator})
    alert = policy()
    condition = {**alert["spec"]["conditions"][0], "apiVersion": "openslo/v1"}
    alert["spec"]["conditions"] = [{"conditionRef": "fast"}]
    alert = yaml.safe_dump({"apiVersion": "openslo/v1", **alert})

    parsed = parse_texts(text, sli, alert, yaml.safe_dump(condition))

    one = parsed.slos["checkout"]
    assert one["source"]["total"] == "sum(orders)"
    assert one["rules"] == [{"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"}]
    assert parsed.remarks == ()


def test_data_source_says_which_server_it_is():
    text = changed(f"{RATIO}.good.metricSource.metricSourceRef", "prod")
    source = """
apiVersion: openslo/v1
kind: DataSource
metadata: {name: prod}
spec: {type: Prometheus, connectionDetails: {url: "https://prom.example.com"}}
"""

    assert parse_texts(text, source).slos["checkout"]["source"]["url"] == "https://prom.example.com"
    assert parse_texts(source, text).slos["checkout"]["source"]["url"] == "https://prom.example.com"


def test_source_that_can_t_be_asked_is_pushed_and_that_is_said():
    for which in ("good", "total"):
        text = changed(f"{RATIO}.{which}.metricSource.type", "Datadog")
    parsed = parse_texts(text)
    assert parsed.slos["checkout"]["source"] == {"type": "push"}
    assert "datadog is not supported as a source" in parsed.remarks[0]

    parsed = parse_texts(SLO, server="")
    assert parsed.slos["checkout"]["source"] == {"type": "push"}
    assert "No Prometheus URL is given" in parsed.remarks[0]


def test_each_objective_is_an_slo():
    text = changed("spec.objectives", [{"target": 0.99}, {"displayName": "Fast!", "target": 0.9},
                                       {"targetPercent": 99.95}])  # fmt: skip

    parsed = parse_texts(text)

    assert {name: one["target"] for name, one in parsed.slos.items()} == {
        "checkout": 0.99,
        "checkout-fast": 0.9,
        "checkout-3": 0.9995,
    }


@pytest.mark.parametrize(
    ("window", "days", "remarks"),
    [
        ({"duration": "30d"}, 30, 0),
        ({"duration": "720h"}, 30, 0),
        ({"duration": "1M"}, 30, 1),
        ({"duration": "1Q"}, 90, 1),
        ({"duration": "1w", "isRolling": False}, 7, 1),
    ],
)
def test_period_is_whole_days_and_rolls(window, days, remarks):
    parsed = parse_texts(changed("spec.timeWindow", [window], changed("spec.alertPolicies", [])))

    assert parsed.slos["checkout"]["window_days"] == days
    assert len(parsed.remarks) == remarks


def test_conditions_are_rules_and_what_does_not_fit_is_said():
    one = policy(op="gte", alertAfter="5m", severity="low")
    one["spec"] |= {"alertWhenNoData": True, "notificationTargets": [{"targetRef": "me"}]}

    fast = policy(lookbackWindow="6h", severity="SEV1")
    parsed = parse_texts(changed("spec.alertPolicies", [one, fast, fast]))

    assert [(rule["long"], rule["severity"]) for rule in parsed.slos["checkout"]["rules"]] == [
        ("1h", "ticket"),
        ("6h", "page"),
    ]
    assert [said.split(": ")[1].split()[0] for said in parsed.remarks] == [
        "alertWhenNoData",
        "notificationTargets",
        "gte",
        "alertAfter",
    ]


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("apiVersion", "openslo/v2alpha1", "documents.0.apiVersion"),
        ("kind", "Budget", "documents.0.kind"),
        ("metadata.name", None, "documents.0.metadata.name"),
        ("metadata.name", "a b", "documents.0.spec.objectives.0: name"),
        ("spec.budgetingMethod", "RatioTimeslices", "documents.0.spec.budgetingMethod"),
        ("spec.objectives", [], "documents.0.spec.objectives"),
        ("spec.objectives", ["x"], "documents.0.spec.objectives.0"),
        ("spec.objectives", [{"target": 1}], "documents.0.spec.objectives.0: target"),
        ("spec.objectives", [{}], "documents.0.spec.objectives.0: target"),
        (
            "spec.objectives",
            [{"targetPercent": "99"}],
            "documents.0.spec.objectives.0.targetPercent",
        ),
        (
            "spec.objectives",
            [{"target": 0.9, "indicatorRef": "nobody"}],
            "documents.0.spec.objectives.0.indicatorRef",
        ),
        ("spec.timeWindow", [{"duration": "90m"}], "documents.0.spec.timeWindow.duration"),
        ("spec.timeWindow", [{"duration": "soon"}], "documents.0.spec.timeWindow"),
        ("spec.indicator", None, "documents.0.spec.indicator"),
        ("spec.indicator", "x", "documents.0.spec.indicator"),
        (
            "spec.indicator.spec",
            {"thresholdMetric": {"metricSource": {"spec": {"query": "up"}}}},
            "documents.0.spec.objectives.0.op",
        ),
        (f"{RATIO}.counter", False, f"documents.0.{RATIO}.counter"),
        (f"{RATIO}.total", None, f"documents.0.{RATIO}"),
        (f"{RATIO}.good", {}, f"documents.0.{RATIO}.good.metricSource"),
        (f"{RATIO}.good.metricSource.spec", {}, f"documents.0.{RATIO}"),
        ("spec.service", 7, "documents.0.spec.service"),
        ("spec.alertPolicies", 7, "documents.0.spec.alertPolicies"),
        (
            "spec.alertPolicies",
            [{"alertPolicyRef": "nobody"}],
            "documents.0.spec.alertPolicies.0.alertPolicyRef",
        ),
        (
            "spec.alertPolicies",
            [policy(kind="anomaly")],
            "documents.0.spec.alertPolicies.0.spec.conditions.0.spec.condition.kind",
        ),
        (
            "spec.alertPolicies",
            [policy(op="lt")],
            "documents.0.spec.alertPolicies.0.spec.conditions.0.spec.condition.op",
        ),
        (
            "spec.alertPolicies",
            [policy(threshold=200)],
            "documents.0.spec.objectives.0: rules.0.burn_rate",
        ),
        (
            "spec.alertPolicies",
            [policy(lookbackWindow="90s")],
            "documents.0.spec.objectives.0: rules.0.long",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_named(path, value, place):
    assert list(parse_errors(changed(path, value))) == [place]


def test_two_of_one_name_are_refused():
    assert list(parse_errors(SLO, SLO)) == ["documents.1.metadata.name"]


@pytest.mark.parametrize("document", [[], [7], ["SLO"], [[SLO]], [{}], [None]])
def test_what_is_no_document_is_refused(document):
    with pytest.raises(InvalidInput):
        parser.parse_documents(document)


def test_text_that_stands_for_more_than_memory_holds_is_refused():
    bomb = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(30))

    with pytest.raises(InvalidInput, match="repeat the value"):
        spec_import.parse_text(bomb)
