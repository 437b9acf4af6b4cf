"""`slo.yaml`: shorthands of a service, other SLOs by name, and loading them."""

import io
from pathlib import Path

import pytest
from django.core.management import call_command

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from slo.arithmetic.objective import PAGE
from slo.models import Sli, Slo
from slo.objectives import configuration, documents, services, slo_file
from slo.provision import load_shipped_file

from .factories import ADMIN, slo

SHIPPED = Path(__file__).parents[2] / "config"


def parse_errors(text):
    with pytest.raises(InvalidInput) as refused:
        slo_file.parse_slo_file(text)
    return refused.value.errors


def figures(parsed):
    return {
        name: (one["kind"], one["target"], one["threshold_ms"]) for name, one in parsed.slos.items()
    }


@pytest.mark.django_db
def test_export_has_the_rules_only_of_slos_with_their_own():
    slo("default-rules")
    slo("lenient", target=0.9)
    slo("own-rules", rules=[{"long": "1h", "short": "5m", "burn_rate": 10, "severity": PAGE}])
    slo("no-rules", rules=[])

    exported = configuration.export_documents()["slo.yaml"]["slos"]

    assert [name for name, one in exported.items() if "rules" in one] == ["no-rules", "own-rules"]
    assert {name: documents.validate(name, one)["rules"] for name, one in exported.items()} == {
        one.name: one.rules for one in Slo.objects.all()
    }


def test_shipped_file_is_four_slos_of_one_service():
    parsed = slo_file.parse_slo_file((SHIPPED / "slo.yaml").read_text())

    assert figures(parsed) == {
        "core-availability": ("availability", 0.999, None),
        "core-p95-latency": ("latency", 0.95, 3000),
        "core-p99-latency": ("latency", 0.99, 8000),
        "core-error-rate": ("ratio", 0.99, None),
    }
    for one in parsed.slos.values():
        assert one["service"] == "core"
        assert one["rules"] == [
            {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"},
            {"long": "6h", "short": "30m", "burn_rate": 6, "severity": "ticket"},
        ]


def test_rules_may_be_written_as_sentences():
    parsed = slo_file.parse_slo_file(
        "availability: 99.9%\nburn_rate_alerts: ['1h burn rate > 14.4', '6h burn rate > 6']"
    )

    assert [tuple(one.values()) for one in parsed.slos["availability"]["rules"]] == [
        ("1h", "5m", 14.4, "page"),
        ("6h", "30m", 6, "ticket"),
    ]


def test_any_percentile_is_a_target():
    parsed = slo_file.parse_slo_file(
        "p99.9_latency: 300ms\np50_latency: '< 1.5 s'\nburn_rate_alerts: []"
    )

    assert figures(parsed) == {
        "p99.9-latency": ("latency", 0.999, 300),
        "p50-latency": ("latency", 0.5, 1500),
    }


def test_rules_for_all_leave_out_what_a_target_can_never_reach_and_say_so():
    parsed = slo_file.parse_slo_file(
        "p90_latency: 1s\nburn_rate_alerts: ['1h burn rate > 14', '6h burn rate > 6']"
    )

    assert [one["burn_rate"] for one in parsed.slos["p90-latency"]["rules"]] == [6]
    assert "p90-latency: a burn rate above 14 can't be reached at 0.9" in parsed.remarks[0]


def test_other_slos_have_the_fields_of_the_api_and_shares_in_percent():
    parsed = slo_file.parse_slo_file("""
service: core
burn_rate_alerts: []
slos:
  oracle-answers: {service: oracle, kind: ratio, target: 99.5%, min_events: 10}
  core-own: {target: 0.9, rules: [{long: 1h, burn_rate: 2, severity: page}]}
""")

    assert parsed.slos["oracle-answers"]["target"] == 0.995
    assert parsed.slos["oracle-answers"]["rules"] == []
    assert parsed.slos["core-own"]["service"] == "core"
    assert parsed.slos["core-own"]["rules"][0]["short"] == "5m"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- a", "slo.yaml"),
        ("a: [", "slo.yaml"),
        ("a: !!python/object/apply:os.system [ls]", "slo.yaml"),
        ("availability: 99%\navailability: 98%", "slo.yaml"),
        ("availabilty: 99%", "slo.yaml: availabilty"),
        ("availability: high", "slo.yaml: availability"),
        ("availability: 100%", "slo.yaml: availability: target"),
        ("availability: 99.9", "slo.yaml: availability: target"),
        ("error_rate: yes", "slo.yaml: error_rate"),
        ("p95_latency: 3", "slo.yaml: p95_latency"),
        ("p95_latency: 3 parsecs", "slo.yaml: p95_latency"),
        ("service: Core!", "slo.yaml: service"),
        ("burn_rate_alerts: 14", "slo.yaml: burn_rate_alerts"),
        ("burn_rate_alerts: [fast]", "slo.yaml: burn_rate_alerts.0"),
        ("burn_rate_alerts: [{windows: 1h}]", "slo.yaml: burn_rate_alerts.0"),
        (
            "availability: 99%\nburn_rate_alerts: [{window: 90s, burn_rate: 2}]",
            "slo.yaml: availability: rules.0.long",
        ),
        ("slos: [a]", "slo.yaml: slos"),
        ("slos: {a: 99%}", "slo.yaml: slos: a"),
        ("slos: {a: {target: 99%, kind: x}}", "slo.yaml: slos: a: kind"),
        ("slos: {a/b: {target: 99%}}", "slo.yaml: slos: a/b: name"),
        ("availability: 99%\nslos: {availability: {target: 99%}}", "slo.yaml: slos: availability"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(text, place):
    assert list(parse_errors(text)) == [place]


def load(folder, *options):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("config", "load", str(folder), *options, stdout=out, stderr=err)
    except SystemExit as ended:
        return ended.code, out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "slo.yaml").write_text("service: core\navailability: 99.9%\nerror_rate: < 1%\n")
    return tmp_path


@pytest.mark.django_db
def test_file_is_loaded_with_counters_and_told_as_loaded(folder):
    code, output, _ = load(folder)

    assert code == 0
    assert "+ SLO core-availability" in output
    assert output.rstrip().endswith("2 new, 0 changed, 0 unchanged.")
    assert Sli.objects.count() == 2
    rows = AuditEntry.objects.filter(action="slo.created")
    assert {row.reason for row in rows} == {"config load"}


@pytest.mark.django_db
def test_second_load_changes_nothing(folder):
    load(folder)
    rows = AuditEntry.objects.count()

    _, output, _ = load(folder)

    assert output.rstrip() == "0 new, 0 changed, 2 unchanged."
    assert AuditEntry.objects.count() == rows


@pytest.mark.django_db
def test_change_is_shown_in_words_and_made(folder):
    load(folder)
    (folder / "slo.yaml").write_text("service: core\navailability: 99.5%\n")

    _, output, _ = load(folder)

    assert output.splitlines()[:3] == [
        "~ SLO core-availability",
        "    target: 99.9 % → 99.5 %",
        "In none of the files, unchanged: SLO core-error-rate.",
    ]
    assert str(services.find_slo("core-availability").target) == "0.99500000"


@pytest.mark.django_db
def test_load_of_one_slo_names_the_others_in_one_line(folder):
    names = [f"other-{n}" for n in range(7)]
    for name in names:
        slo(name)

    _, output, _ = load(folder)

    lines = [line for line in output.splitlines() if "other-" in line]
    first = ", ".join(f"SLO {name}" for name in names[:5])
    assert lines == [f"In none of the files, unchanged: {first} and 2 more."]


@pytest.mark.django_db
def test_dry_run_says_the_same_and_does_nothing(folder):
    _, output, _ = load(folder, "--dry-run")

    assert "Dry run: 2 new" in output
    assert not Slo.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_what_was_edited_in_the_console_can_be_kept(folder):
    load(folder)
    slo("core-availability", target=0.95)
    services.remove_slo(name="core-error-rate", actor=ADMIN, now=db_now())

    _, output, _ = load(folder, "--keep-edited")

    assert "= SLO core-availability (changed by user:ada on " in output
    assert float(services.find_slo("core-availability").target) == 0.95
    assert Slo.objects.present().count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("bad", ["services", "slo"])
def test_wrong_file_of_one_app_stops_those_of_the_other(folder, bad):
    (folder / "services.yaml").write_text("services: {core: {name: Core}}")
    (folder / f"{bad}.yaml").write_text("nonsense: 1")

    code, _, output = load(folder)

    assert code == 1
    assert f"{bad}.yaml: nonsense" in output
    assert "Nothing changed." in output
    assert not Slo.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_new_installation_begins_with_the_shipped_objectives_once():
    load_shipped_file(db_now())
    for name in Slo.objects.values_list("name", flat=True):
        services.remove_slo(name=name, actor=ADMIN, now=db_now())

    load_shipped_file(db_now())

    assert Slo.objects.count() == 4
    assert not Slo.objects.present().exists()
    assert AuditEntry.objects.order_by("id").first().actor_name == "provision"
