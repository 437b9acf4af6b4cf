"""OpenSLO over HTTP, export and import without loss."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core import json_values
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import as_role
from slo.models import Sli, Slo
from slo.objectives import documents, metadata, spec_import
from slo.objectives.openslo import export, parser

from .factories import slo

TEXT = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: checkout}
spec:
  service: shop
  indicator:
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: sum(good)}}}
        total: {metricSource: {type: Prometheus, spec: {query: sum(total)}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  objectives: [{target: 0.995}]
"""


RULES = st.lists(
    st.tuples(
        st.sampled_from(["1h", "6h", "24h", "3d"]),
        st.sampled_from(["5m", "30m", "7m"]),
        st.decimals("0.01", "19.99", places=2),
        st.sampled_from(["page", "ticket"]),
    ),
    max_size=4,
    unique_by=lambda rule: rule[:3],
)
SOURCES = st.sampled_from(
    [
        {"type": "push"},
        {"type": "prometheus", "url": "http://a:9090", "good": "sum(g)", "total": "sum(t)"},
        {"type": "prometheus", "url": "http://b", "good": 'g{a="\u00e4"}', "total": "t"},
    ]
)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40).filter(
    lambda text: not import_errors(text)
)

NAMES = st.sampled_from(["", "Good minutes", "\ucc3e\uae30: yes", "1"])
LABELS = st.dictionaries(
    st.sampled_from(["team", "example.com/tier", "\ud300"]),
    st.one_of(NAMES, st.lists(NAMES, min_size=1, max_size=3)),
)


def import_errors(text):
    errors = {}
    json_values.read_text("", text, 40, errors)
    return errors


@st.composite
def slos(draw):
    kind = draw(st.sampled_from(["availability", "ratio", "latency"]))
    service = draw(st.sampled_from(["", "core"]))
    actions = [{"do": "trip", "switch": "experiment:x"}, {"do": "hold_ramps"}][: 1 + bool(service)]
    return documents.validate(
        "x",
        {
            "kind": kind,
            "target": float(draw(st.decimals("0.5", "0.95", places=4))),
            "window_days": draw(st.integers(3, 90)),
            "threshold_ms": draw(st.sampled_from([300, 0.5, 3000])) if kind == "latency" else None,
            "source": draw(SOURCES),
            "rules": [
                {"long": long, "short": short, "burn_rate": float(rate) / 10, "severity": severity}
                for long, short, rate, severity in draw(RULES)
            ],
            "min_events": draw(st.integers(0, 10)),
            "actions": draw(st.sampled_from([[], actions])),
            "description": draw(WORDS),
            "owner": draw(WORDS),
            "service": service,
            "runbook_url": draw(st.sampled_from(["", "https://wiki/x"])),
            "slice_target": draw(st.sampled_from([None, 0.99, 0.5])),
            "metadata": {
                **{name: draw(NAMES) for name in metadata.TEXTS},
                **{name: draw(LABELS) for name in metadata.MAPS},
            },
        },
    )


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["a", "b.c", "D-1_2"]), slos(), min_size=1))
def test_what_was_exported_is_imported_as_it_was(given):
    document = parser.parse_documents(
        spec_import.parse_text(export.to_yaml(export.export_documents(given)))
    )

    assert document.slos == given
    assert document.remarks == ()


def send(caller, text, query="", content_type="application/yaml"):
    path = f"/api/v1/openslo/{query}"
    return caller.client.generic("POST", path, data=text.encode(), content_type=content_type)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["application/yaml", "application/x-yaml", "text/yaml"])
def test_file_is_taken_over_with_counters_and_told_in_the_trail(admin, kind):
    response = send(admin, TEXT, "?prometheus_url=http://prom:9090", kind)

    assert response.status_code == 200
    assert response.json()["slos"] == [{"name": "checkout", "outcome": "created"}]
    assert "no alert policies" in response.json()["remarks"][0]
    assert Slo.objects.get().source["url"] == "http://prom:9090"
    assert Sli.objects.get().slo.name == "checkout"
    row = AuditEntry.objects.order_by("-id").first()
    assert (row.action, row.reason) == ("slo.created", "Import of SLO documents")


@pytest.mark.django_db
def test_same_again_changes_nothing(admin):
    send(admin, TEXT)
    rows = AuditEntry.objects.count()

    response = send(admin, TEXT)

    assert response.json()["slos"] == [{"name": "checkout", "outcome": "same"}]
    assert AuditEntry.objects.count() == rows


@pytest.mark.django_db
def test_json_may_be_one_document_or_several_or_a_text(admin):
    (one,) = spec_import.parse_text(TEXT)

    assert admin.post("/openslo/", one).json()["slos"][0]["outcome"] == "created"
    assert admin.post("/openslo/", {"documents": [one]}).json()["slos"][0]["outcome"] == "same"
    assert admin.post("/openslo/", {"text": TEXT}).json()["slos"][0]["outcome"] == "same"


@pytest.mark.django_db
def test_dry_run_changes_nothing(admin):
    assert send(admin, TEXT, "?dry_run=true").json()["dry_run"] is True
    assert admin.post("/openslo/", {"text": TEXT, "dry_run": True}).json()["dry_run"] is True
    assert not Slo.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("said", ["1", "True", "yes", ""])
def test_dry_run_of_a_file_that_is_neither_true_nor_false_is_refused(admin, said):
    response = send(admin, TEXT, f"?dry_run={said}")

    assert (response.status_code, list(response.json()["errors"])) == (400, ["dry_run"])
    assert not Slo.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "value",
    ["!!timestamp x", "!!bool x", "!!int ''", "0x" + "f" * 9000, "1" + ":1" * 9000,
     "1" + ":1" * 900 + ".5", "!!map [a]", r'"\UFFFFFFFF"'],
    ids=["timestamp", "bool", "empty-int", "hexadecimal", "sexagesimal", "float", "map", "escape"],
)  # fmt: skip
def test_yaml_value_that_nothing_can_read_is_refused(admin, value):
    response = send(admin, TEXT.replace("28d", value))

    assert (response.status_code, list(response.json()["errors"])) == (400, ["text"])


@pytest.mark.django_db
def test_one_wrong_document_stops_all_of_them_and_is_named(admin):
    wrong = TEXT.replace("checkout", "other").replace("0.995", "1.5")

    response = send(admin, f"{TEXT}---{wrong}")

    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["documents.1.spec.objectives.0: target"]
    assert not Slo.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["", "a: [", "- 1", "\x00", "just words", "a: *b"])
def test_what_is_no_document_is_refused(admin, text):
    assert send(admin, text).status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("service: shop", 'service: shop\n  description: "\\ud800"'),
        ("service: shop", 'service: "\\ud800"'),
        ("sum(good)", '"\\ud800"'),
        ("name: checkout", 'name: "\\ud800"'),
        (
            "{name: checkout}",
            r"""{name: a, annotations: {switchgear/actions: '[{"\ud800": 1}]'}}""",
        ),
        (
            "{name: checkout}",
            r"""{name: a, annotations: {switchgear/actions: '[{"do": "trip", "\ud800": 1}]'}}""",
        ),
    ],
)
def test_half_a_surrogate_is_refused_and_named(admin, said, instead):
    response = send(admin, TEXT.replace(said, instead), "?prometheus_url=http://prom:9090")

    assert response.status_code == 400
    assert not Slo.objects.exists()


@pytest.mark.django_db
def test_remark_on_half_a_surrogate_can_be_sent(admin):
    other = 'apiVersion: openslo/v1\nkind: Service\nmetadata: {name: "\\ud800"}\n'

    response = send(admin, f"{other}---{TEXT}", "?prometheus_url=http://prom:9090")

    assert "documents.0: The Service \\ud800 was ignored" in response.json()["remarks"][0]


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_admins_import(role):
    assert send(as_role(role), TEXT).status_code == 403


@pytest.mark.django_db
def test_export_is_imported_as_it_was(admin):
    slo("a", target=0.99)
    slo("b", kind="latency", threshold_ms=300, actions=[{"do": "hold_ramps"}])
    before = admin.get("/slos/").json()

    as_yaml = admin.get("/openslo/?format=yaml")
    as_json = admin.get("/openslo/").json()

    assert as_yaml["Content-Type"] == "application/yaml"
    for response in (send(admin, as_yaml.content.decode()), admin.post("/openslo/", as_json)):
        assert [one["outcome"] for one in response.json()["slos"]] == ["same", "same"]
    assert admin.get("/slos/").json() == before


@pytest.mark.django_db
def test_one_slo_may_be_exported_alone(admin):
    slo("a")
    slo("b")

    (document,) = admin.get("/openslo/?slo=b").json()["documents"]

    assert document["metadata"]["name"] == "b"
    assert admin.get("/openslo/?slo=nobody").status_code == 404
