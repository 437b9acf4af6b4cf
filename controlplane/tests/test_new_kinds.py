"""A kind that one module registers appears wherever people and programs see its kind."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from prometheus_client.core import GaugeMetricFamily, Metric

from controlplane.core import metrics
from controlplane.core.checks import check_retention_periods
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from controlplane.core.metrics import DATABASE_METRICS
from controlplane.core.outbox import services as outbox
from controlplane.core.page_registry import (
    ATTENTION_SOURCES,
    REPORT_SECTIONS,
    AttentionItem,
    AttentionSource,
    IsOwned,
    ReportSection,
)
from controlplane.core.palette.registry import PALETTE_COMMANDS, PaletteCommand
from controlplane.core.registry import RegisteredFunction
from controlplane.core.retention import RETENTION_RULES, RetentionRule
from controlplane.core.threshold_metrics import COUNT, THRESHOLD_METRICS, ThresholdMetric
from controlplane.tests.test_docs_names import documented
from switches.report import weeks
from switches.report.compose import get_zone

pytestmark = pytest.mark.django_db


@pytest.fixture
def _template() -> Iterator[None]:
    template = MessageTemplate(
        "teapot.boiled", "🫖", "{pot} boils", (("Since", "at"),), severity="warning"
    )
    with MESSAGE_TEMPLATES.registered(template):
        yield


@pytest.fixture
def _section() -> Iterator[None]:
    def teapots(
        _start: datetime, _end: datetime, _now: datetime, _is_owned: IsOwned
    ) -> ReportSection:
        return ReportSection("teapots", "Teapots", "3 teapots boiled.", "warn")

    with REPORT_SECTIONS.registered(RegisteredFunction(teapots, 1)):
        yield


@pytest.fixture
def _source() -> Iterator[None]:
    def teapots(now: datetime) -> list[AttentionItem]:
        return [AttentionItem("teapot", "warning", "A teapot boils", "Lift it.", "/jobs/", now)]

    with ATTENTION_SOURCES.registered(AttentionSource(teapots, 1)):
        yield


@pytest.fixture
def _rule() -> Iterator[None]:
    rule = RetentionRule(
        name="teapots",
        model="core.Tick",
        period=timedelta(days=3),
        since="ran_at",
        bounds=(2, 9),
        tick="outbox.purge",
        why="When teapots boiled.",
    )
    with RETENTION_RULES.registered(rule):
        yield


@pytest.fixture
def _command() -> Iterator[None]:
    command = PaletteCommand("Teapots", "jobs", "jobs_page", keys="g 9", words="kettle")
    with PALETTE_COMMANDS.registered(command):
        yield


@pytest.fixture
def _metric() -> Iterator[None]:
    def teapots(_now: datetime) -> Iterator[Metric]:
        yield GaugeMetricFamily("switchgear_teapots", "Teapots that boil.", value=3)

    with DATABASE_METRICS.registered(RegisteredFunction(teapots)):
        metrics.scrapes.clear()
        yield
    metrics.scrapes.clear()


@pytest.fixture
def _threshold_metric() -> Iterator[None]:
    metric = ThresholdMetric(
        "teapots", "Boiling teapots", COUNT, ("now",), "One for each teapot.", lambda *_: ()
    )
    with THRESHOLD_METRICS.registered(metric):
        yield


@pytest.mark.usefixtures("_template")
def test_message_template_gives_severity_text_and_choices(settings: Any) -> None:
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
    admin = as_role("admin")
    outbox.announce(
        event="teapot.boiled", event_key="1", facts={"pot": "Pot 7"}, now=db_now(), to=["slack"]
    )

    deliveries = admin.get("/deliveries/").json()["results"]
    page = admin.client.get("/deliveries/").content.decode()

    assert [(one["title"], one["severity"]) for one in deliveries] == [("Pot 7 boils", "warning")]
    assert "Pot 7 boils" in page
    assert '<option value="teapot.boiled">' in page
    assert set(MESSAGE_TEMPLATES) - documented("events") == {"teapot.boiled"}


@pytest.mark.usefixtures("_section")
def test_report_section_is_on_page_in_api_and_command() -> None:
    viewer, week = as_role("viewer"), weeks.week_of(db_now(), get_zone())
    out = StringIO()

    answer = viewer.get(f"/reports/weekly/{week}/").json()
    page = viewer.client.get(f"/reports/weekly/{week}/").content.decode()
    call_command("report", "weekly", "--week", str(week), stdout=out)

    assert answer["sections"][0]["summary"] == "3 teapots boiled."
    assert 'id="teapots-title"' in page
    assert "3 teapots boiled." in out.getvalue()


@pytest.mark.usefixtures("_source")
def test_attention_source_is_on_page_and_in_api() -> None:
    viewer = as_role("viewer")

    items = viewer.get("/attention/", {"kind": "teapot"}).json()["results"]

    assert [one["title"] for one in items] == ["A teapot boils"]
    assert "A teapot boils" in viewer.client.get("/attention/").content.decode()


@pytest.mark.usefixtures("_rule")
def test_retention_rule_is_in_command_setting_and_docs_check(settings: Any) -> None:
    out = StringIO()

    call_command("retention", only="teapots", stdout=out)
    settings.KEPT_DAYS = {"teapots": 20}
    (error,) = check_retention_periods()

    assert re.search(r"teapots +3 d +\d+ rows .* core_tick", out.getvalue())
    assert "teapots must be from 2 to 9 days, not 20." in error.msg
    assert set(RETENTION_RULES) - documented("rules") == {"teapots"}


@pytest.mark.usefixtures("_command")
def test_palette_command_is_found_and_taught() -> None:
    client = as_role("viewer").client

    found = client.get("/find/part/", {"q": "kettle"}).content.decode()
    shortcuts = client.get("/preferences/").content.decode()

    assert 'data-title="Teapots"' in found
    assert 'data-keys="g 9"' in shortcuts


@pytest.mark.usefixtures("_metric")
def test_metric_is_scraped_and_missed_by_docs_check() -> None:
    text, _ = metrics.exposition("")

    assert b"switchgear_teapots 3.0" in text
    assert "switchgear_teapots" not in documented("metrics")


@pytest.mark.usefixtures("_threshold_metric")
def test_threshold_metric_is_offered_by_form_and_api() -> None:
    admin = as_role("admin")
    rule = {
        "title": "Too many teapots",
        "metric": "teapots",
        "statistic": "now",
        "comparison": ">",
        "value": 2,
        "severity": "warning",
    }

    made = admin.send("put", "/thresholds/teapots/", rule)

    assert made.status_code == 201
    assert made.json()["sentence"].startswith("Boiling teapots")
    assert "Boiling teapots" in admin.client.get("/slos/thresholds/new/").content.decode()
