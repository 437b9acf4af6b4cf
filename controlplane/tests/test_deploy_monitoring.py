"""Rules and dashboard: of metrics that exist, and tested by Prometheus's own tool."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from controlplane.core import health, metrics
from controlplane.core.audit import services
from controlplane.core.clock import db_now
from controlplane.core.liveness import Loop
from controlplane.dataplane import metrics as dataplane_metrics
from controlplane.dataplane.state import State
from controlplane.gate import RequestGate
from controlplane.tests.deployment import DEPLOY, ROOT, base
from controlplane.tests.installation import wait_until

RULES = DEPLOY / "prometheus" / "rules.yaml"
DASHBOARD = DEPLOY / "grafana" / "switchgear.json"
METRIC = re.compile(r"\b(?:switchgear|process)_[a-z0-9_]+")
PARTS = ("_bucket", "_sum", "_count")
RUNBOOK = re.compile(r"https://switchgear\.example/runbooks/([a-z-]+)/")


class Served:
    """The status of a web process with a snapshot."""

    version = 1
    age_seconds = 0.5


@pytest.fixture
def exposed(transactional_db):
    """Return the names of all metrics of the web, the data plane and the other processes."""
    services.verify_next_rows(db_now())  # Nothing is known of a trail before somebody verified it.
    before = health.snapshot_source
    health.snapshot_source = Served
    # A busy machine may take longer than a scrape waits.
    wait_until(lambda: b"switchgear_database_up 1" in metrics.exposition("")[0], 30)
    texts = [
        metrics.exposition("")[0],
        metrics.process_exposition("", Loop(may_rest_seconds=1))[0],
        dataplane_metrics.render_metrics(State(), "")[2],
    ]
    types = re.findall(r"^# TYPE (\S+) (\S+)$", b"".join(texts).decode(), re.MULTILINE)
    types += [(one.name, one.type) for one in RequestGate(None, State(), None).metrics()]
    parts = [name + part for name, kind in types if kind == "histogram" for part in PARTS]
    yield {name for name, _ in types} | set(parts)
    health.snapshot_source = before


def rules():
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def list_panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if "targets" in panel]


def test_each_rule_asks_for_metrics_that_exist_and_has_a_runbook(exposed):
    for rule in rules():
        used = set(METRIC.findall(rule["expr"]))
        assert used, rule["alert"]
        assert used <= exposed, rule["alert"]
        page = RUNBOOK.fullmatch(rule["annotations"]["runbook_url"])
        assert page, rule["alert"]
        assert (ROOT / "docs" / "runbooks" / f"{page[1]}.md").is_file(), rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}


def test_each_panel_shows_metrics_that_exist(exposed):
    for panel in list_panels():
        used = {name for each in panel["targets"] for name in METRIC.findall(each["expr"])}
        assert used, panel["title"]
        assert used <= exposed, panel["title"]


def test_panels_lie_beside_each_other_and_ask_the_chosen_source():
    taken = set()
    for panel in list_panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert {each["datasource"]["uid"] for each in panel["targets"]} == {"${datasource}"}
    identifiers = [panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    assert len(identifiers) == len(set(identifiers))


def test_what_workers_are_scaled_by_exists(exposed):
    scaled = base("HorizontalPodAutoscaler")["worker"]["spec"]["metrics"]

    assert {each["external"]["metric"]["name"] for each in scaled} <= exposed


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on PATH")
def test_each_rule_fires_when_it_should_and_not_before():
    tests = RULES.with_name("rules.test.yaml")
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(tests)]):
        done = subprocess.run(
            ["promtool", *command], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_tested():
    text = RULES.with_name("rules.test.yaml").read_text()

    assert [rule["alert"] for rule in rules() if rule["alert"] not in text] == []
