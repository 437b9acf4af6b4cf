"""Texts of configuration files with entries of every kind, for tests."""

from collections.abc import Mapping
from typing import Any

from controlplane.core import provision
from controlplane.core.clock import db_now
from controlplane.core.configuration import files
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.readers import Loaded, LoadOptions

TEXTS = {
    "switches.yaml": """
switches:
  feature:nl2sql:
    owner: Oracle
    description: |-
      Natural language queries.

      Stops them all, "quoted" too: 자연어
    runbook_url: https://wiki.example.org/nl2sql
  segment:legal: {}
""",
    "rules.yaml": """
rules:
  One experiment at a time: {kind: exclusive, switches: ["experiment:*"]}
  At most two features: {kind: at_most, switches: ["feature:*"], n: 2}
""",
    "trips.yaml": """
policies:
  - trigger: security-incident
    title: Security incident
    sources: ["*security*"]
    scopes: [global, segment]
    gate: person
  - trigger: srm
    title: Sample ratio mismatch
    sources: ["srm:*"]
    scopes: [experiment]
    gate: automatic
    budget_per_hour: 3
  - trigger: night
    title: Night batch
    sources: ["night:*"]
    scopes: [feature]
    gate: automatic
""",
    "thresholds.yaml": """
thresholds:
  slow: {metric: "latency_ms:e2e", statistic: p95, value: 4000, severity: warning}
  timeout_rate: {metric: timeout_rate, value: 0.02, severity: critical, enabled: false}
""",
    "slo.yaml": """
slos:
  oracle-answers: {service: oracle, kind: ratio, target: 99.5%, rules: []}
  oracle-latency: {service: oracle, kind: latency, target: 95%, threshold_ms: 2500}
  oracle-minutes:
    service: oracle
    target: 0.99
    slice_target: 0.95
    metadata: {display_name: Answers, labels: {team: [search, answers], tier: "1"}}
    actions: [{do: hold_ramps}, {do: trip, switch: "feature:nl2sql", on: any, expires_in: 2h}]
""",
    "drills.yaml": """
schedules:
  feature:nl2sql: {every: 30d, reason: before each sale weekend}
  experiment:rag-v2: {every: 7d, mode: dry, reason: rehearsed by the research team}
""",
    "targets.yaml": """
targets:
  kim: {kind: person, user: kim}
  lee: {kind: person, email: lee@example.org}
  ops: {kind: channel, address: "slack:#ops"}
  pager: {kind: channel, address: pagerduty, settings: {pagerduty_region: eu}}
  hook: {kind: channel, address: webhook}
  oracle on call:
    kind: on_call
    members: [kim, lee]
    rotation_days: 3
    rotation_starts_at: "2026-11-23T09:00:00+09:00"
    time_zone: Asia/Seoul
  critical:
    kind: escalation
    steps: [{after_minutes: 0, target: oracle on call}, {after_minutes: 15, target: pager}]
routes:
  - {event: "switch.*", scope: segment, target: ops}
  - {target: hook}
""",
}


def read(name: str, text: str) -> dict[str, Any]:
    """Return the document of a valid configuration file."""
    errors: dict[str, list[str]] = {}
    document = files.parse_document(name, text, errors)
    assert not errors
    return document


def load(texts: Mapping[str, str], *, plan: str = "", **options: bool) -> Loaded:
    present = LoadOptions(actor=provision.ACTOR, now=db_now(), **options)
    return configuration.load_texts(texts, present, plan=plan)
