"""Import of Sloth and Pyrra documents: their SLOs here, and a remark for each ignored field."""

import pytest
import yaml

from controlplane.core.errors import InvalidInput
from slo.objectives import spec_files

SERVER = "http://prom:9090"
SLOTH = """
version: prometheus/v1
service: shop
labels: {owner: team-shop}
slos:
  - name: orders
    objective: 99.5
    description: Orders get taken.
    labels: {tier: 1}
    sli:
      events:
        error_query: sum(rate(orders_total{job="shop",code=~"(5..|429)"}[{{.window}}]))
        total_query: sum(rate(orders_total{job="shop"}[{{.window}}]))
    alerting:
      name: ShopOrders
      labels: {category: availability}
      annotations: {runbook: "https://wiki.example/orders", summary: Orders fail}
      page_alert: {labels: {severity: pager}}
      ticket_alert: {disable: true}
"""
RESOURCE = """
apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata: {name: shop, namespace: monitoring}
spec:
  service: shop
  slos:
    - name: orders
      objective: 99
      sli:
        events:
          errorQuery: sum(increase(orders_failed_total[{{ .window }}]))
          totalQuery: sum(increase(orders_total[{{ .window }}]))
      alerting: {pageAlert: {disable: true}, ticketAlert: {disable: true}}
"""
PYRRA = """
apiVersion: pyrra.dev/v1alpha1
kind: ServiceLevelObjective
metadata: {name: search-errors, namespace: monitoring, labels: {team: search}}
spec:
  target: "99.9"
  window: 4w
  description: Searches succeed.
  indicator:
    ratio:
      errors: {metric: 'search_total{code=~"5.."}'}
      total: {metric: search_total}
      grouping: [route]
"""
LATENCY = """
apiVersion: pyrra.dev/v1alpha1
kind: ServiceLevelObjective
metadata: {name: search-latency}
spec:
  target: "95"
  window: 2w
  indicator:
    latency:
      success: {metric: 'search_duration_seconds_bucket{le="0.25"}'}
      total: {metric: search_duration_seconds_count}
  alerting: {name: SlowSearch, absent: false}
"""


def parse(*texts, server=SERVER):
    raw = [one for text in texts for one in yaml.safe_load_all(text)]
    return spec_files.parse_documents(raw, server=server)


def errors_of(text):
    with pytest.raises(InvalidInput) as refused:
        parse(text)
    return list(refused.value.errors)


def changed(text, path, value):
    """Return the text with another value at a path of its document."""
    document = yaml.safe_load(text)
    *above, last = path.split(".")
    inside = document
    for key in above:
        inside = inside[int(key) if key.isdigit() else key]
    inside[last] = value
    return yaml.safe_dump(document)


def test_sloth_file_reads_the_counters_of_its_rates():
    one = parse(SLOTH).slos["shop-orders"]

    total, errors = (
        'sum(orders_total{job="shop"})',
        'sum(orders_total{job="shop",code=~"(5..|429)"})',
    )
    assert one["source"] == {
        "type": "prometheus",
        "url": SERVER,
        "good": f"({total}) - (({errors}) or vector(0))",
        "total": total,
    }
    assert (one["target"], one["window_days"], one["service"]) == (0.995, 30, "shop")
    assert one["description"] == "Orders get taken."
    assert one["runbook_url"] == "https://wiki.example/orders"
    assert one["metadata"] == {
        "display_name": "orders",
        "labels": {"owner": "team-shop", "tier": "1"},
    }


def test_sloth_alerts_are_the_workbooks_rules_unless_disabled():
    one = parse(SLOTH).slos["shop-orders"]

    assert [(rule["long"], rule["burn_rate"], rule["severity"]) for rule in one["rules"]] == [
        ("1h", 14.4, "page"),
        ("6h", 6, "page"),
    ]
    assert parse(RESOURCE).slos["shop-orders"]["rules"] == []


def test_each_ignored_field_of_sloth_has_a_remark():
    remarks = [text.partition(": ")[0] for text in parse(SLOTH).remarks]

    at = "documents.0.slos.0"
    assert remarks == [
        at,
        f"{at}.alerting.name",
        f"{at}.alerting.labels",
        f"{at}.alerting.annotations.summary",
        f"{at}.alerting.page_alert.labels",
    ]


def test_sloth_resource_is_read_like_its_file():
    one = parse(RESOURCE).slos["shop-orders"]

    assert one["source"]["total"] == "sum(orders_total)"
    assert one["source"]["good"].endswith("((sum(orders_failed_total)) or vector(0))")


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("service", "", "documents.0.service"),
        ("slos", [], "documents.0.slos"),
        ("slos.0.name", None, "documents.0.slos.0.name"),
        ("slos.0.objective", 100, "documents.0.slos.0.objective"),
        ("slos.0.objective", "high", "documents.0.slos.0.objective"),
        ("slos.0.sli", {"raw": {"error_ratio_query": "x"}}, "documents.0.slos.0.sli.raw"),
        ("slos.0.sli", {"plugin": {"id": "x"}}, "documents.0.slos.0.sli.plugin"),
        ("slos.0.sli", {}, "documents.0.slos.0.sli.events.error_query"),
        *(
            (
                "slos.0.sli.events.total_query",
                query,
                "documents.0.slos.0.sli.events.total_query",
            )
            for query in (
                "sum(orders_total)",
                "sum(rate(orders_total[5m]))",
                "avg_over_time(up[{{.window}}])",
                "sum(rate(a[{{.window}}])) / sum(rate(b[{{.window}}]))",
                "sum(rate(a[{{.window}}])) + avg_over_time(b[{{.window}}])",
            )
        ),
    ],
)
def test_sloth_field_that_does_not_fit_is_named(path, value, place):
    assert errors_of(changed(SLOTH, path, value)) == [place]


def test_rate_inside_a_difference_is_removed_too():
    query = """(
      sum(rate(d_seconds_count{verb!="WATCH"}[{{.window}}]))
      - sum(rate(d_seconds_bucket{le="0.4",verb!="a/b[c]"}[{{.window}}]))
    )"""
    one = parse(changed(SLOTH, "slos.0.sli.events.error_query", query)).slos["shop-orders"]

    removed = (
        '( sum(d_seconds_count{verb!="WATCH"}) - sum(d_seconds_bucket{le="0.4",verb!="a/b[c]"}) )'
    )
    assert removed in one["source"]["good"]


def test_pyrra_ratio_counts_what_is_no_error():
    parsed = parse(PYRRA)

    one = parsed.slos["search-errors"]
    assert one["source"]["total"] == "sum(search_total)"
    assert one["source"]["good"] == (
        '(sum(search_total)) - ((sum(search_total{code=~"5.."})) or vector(0))'
    )
    assert (one["target"], one["window_days"], one["kind"]) == (0.999, 28, "ratio")
    assert one["metadata"] == {"labels": {"team": "search"}}
    assert [
        (rule["long"], rule["short"], rule["burn_rate"], rule["severity"]) for rule in one["rules"]
    ] == [
        ("1h", "5m", 14, "page"),
        ("6h", "30m", 7, "page"),
        ("24h", "2h", 2, "ticket"),
        ("4d", "6h", 1, "ticket"),
    ]
    assert [text.partition(": ")[0] for text in parsed.remarks] == [
        "documents.0.spec.indicator.ratio.grouping",
        "documents.0.metadata.namespace",
    ]


def test_pyrra_latency_has_the_threshold_of_its_bucket():
    parsed = parse(LATENCY)

    one = parsed.slos["search-latency"]
    assert (one["kind"], one["threshold_ms"]) == ("latency", 250)
    assert one["source"]["good"] == 'sum(search_duration_seconds_bucket{le="0.25"})'
    # Half of 28 days: half of each window.
    assert [(rule["long"], rule["short"]) for rule in one["rules"]] == [
        ("30m", "2m"),
        ("3h", "15m"),
        ("12h", "1h"),
        ("2d", "3h"),
    ]
    assert [text.partition(": ")[0] for text in parsed.remarks] == [
        "documents.0.spec.alerting.name"
    ]


@pytest.mark.parametrize("alerting", [{"disabled": True}, {"burnrates": False}])
def test_pyrra_without_alerts_has_no_rules(alerting):
    assert parse(changed(PYRRA, "spec.alerting", alerting)).slos["search-errors"]["rules"] == []


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("kind", "Other", "documents.0.kind"),
        ("metadata", {}, "documents.0.metadata.name"),
        ("spec.target", "most", "documents.0.spec.target"),
        ("spec.window", "90m", "documents.0.spec.window"),
        ("spec.window", "", "documents.0.spec.window"),
        ("spec.window", "99999y", "documents.0.spec.window"),
        ("spec.indicator", {}, "documents.0.spec.indicator.ratio.errors.metric"),
        (
            "spec.indicator",
            {"bool_gauge": {"metric": "up"}},
            "documents.0.spec.indicator.bool_gauge",
        ),
        (
            "spec.indicator",
            {"latencyNative": {"total": {"metric": "x"}}},
            "documents.0.spec.indicator.latencyNative",
        ),
        (
            "spec.indicator.ratio.total.metric",
            "rate(x[5m])",
            "documents.0.spec.indicator.ratio.total.metric",
        ),
    ],
)
def test_pyrra_field_that_does_not_fit_is_named(path, value, place):
    assert errors_of(changed(PYRRA, path, value)) == [place]


def test_documents_without_a_server_are_pushed():
    parsed = parse(SLOTH, PYRRA, server="")

    assert {one["source"]["type"] for one in parsed.slos.values()} == {"push"}
    assert sum("No Prometheus URL" in text for text in parsed.remarks) == 2


def test_documents_of_several_tools_and_lists_of_resources_are_imported_at_once():
    items = yaml.safe_dump(
        {"kind": "List", "items": [yaml.safe_load(PYRRA), yaml.safe_load(LATENCY)]}
    )

    assert parse(SLOTH, items).slos.keys() == {"shop-orders", "search-errors", "search-latency"}


def test_errors_of_all_documents_are_reported_together():
    other = "apiVersion: openslo/v1\nkind: Nothing\n"
    broken = changed(SLOTH, "slos.0.objective", 0)

    assert errors_of(f"{broken}\n---\n{other}") == [
        "documents.1.kind",
        "documents.0.slos.0.objective",
    ]


def test_same_name_twice_is_refused():
    assert errors_of(f"{PYRRA}\n---\n{PYRRA}") == ["documents.1"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (SLOTH, "owner"),
        (SLOTH, "slos.0.tier"),
        (SLOTH, "slos.0.sli.period"),
        (SLOTH, "slos.0.sli.events.offset"),
        (SLOTH, "slos.0.alerting.silent"),
        (SLOTH, "slos.0.alerting.page_alert.after"),
        (PYRRA, "spec.performance_over_accuracy"),
        (PYRRA, "spec.indicator.native"),
        (PYRRA, "spec.indicator.ratio.offset"),
        (LATENCY, "spec.alerting.severities"),
    ],
)
def test_unknown_field_has_a_remark(text, path):
    remarks = parse(changed(text, path, True)).remarks

    assert f"documents.0.{path}: Ignored: an unknown field." in remarks
