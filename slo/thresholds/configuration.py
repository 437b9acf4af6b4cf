"""The configuration file `thresholds.yaml`: threshold rules by name."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, shortest_form
from controlplane.core.configuration.files import read_entry_file
from controlplane.core.configuration.readers import REASON, Loaded, LoadOptions
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import Conflict
from controlplane.core.threshold_metrics import ABOVE, COMPARISONS
from slo.models import ThresholdRule
from slo.models.alerts import SEVERITIES
from slo.objectives import names

from . import rules, services

FILE, PART = "thresholds.yaml", "thresholds"
ACTIONS = ("threshold.created", "threshold.changed", "threshold.removed")
DEFAULTS = {"comparison": ABOVE, "min_events": 1, "enabled": True}


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Create or change the threshold rules of the file; a rule gets defaults for missing fields."""
    entries, errors = read_entry_file(FILE, texts[FILE], PART)
    present = _read_states()
    edited = find_manual_edits(ACTIONS)
    found = Comparison(
        "threshold rule",
        FILE,
        present,
        options,
        edited,
        errors,
        audit_prefix=services.audit_target(""),
    ).compare_all(entries, rules.validate)
    services.require_capacity(found.count_new())
    audit_rows: list[dict[str, Any]] = []
    for one in found.writes if not options.dry_run else ():
        _, before = services.write_rule(one.name, one.after, options.now)
        if before != one.before:
            raise Conflict(f"Someone else just changed {one.name}. Compare again.")
        audit_rows.append(services.audit_change(one.name, one.before, one.after, REASON))
    return found.build_result(audit_rows)


def export_documents() -> dict[str, dict[str, Any]]:
    found = {
        name: shortest_form(document, DEFAULTS, partial(rules.validate, name))
        for name, document in _read_states().items()
    }
    return {FILE: {PART: found}}


def build_schema() -> Schema:
    properties = {
        "title": schemas.text(200),
        "metric": schemas.text(names.MAX_NAME_LENGTH, "timeout_rate, latency_ms:e2e, …"),
        "statistic": schemas.text(help="Optional if the metric has only one."),
        "window": schemas.text(12, "Whole minutes, by default 5m."),
        "comparison": schemas.choice(COMPARISONS),
        "value": schemas.number(0, rules.MAX_VALUE, "Shares are 0 to 1, latencies milliseconds."),
        "min_events": schemas.whole(0, rules.MAX_EVENTS, "With fewer events, no alert opens."),
        "severity": schemas.choice(SEVERITIES),
        "enabled": schemas.flag(),
        "runbook_url": schemas.web_url(500),
    }
    required = ("metric", "value", "severity")
    rule = schemas.fields({name: properties[name] for name in rules.FIELDS}, required)
    named = {PART: schemas.entries(rule, f"^{names.NAME}$", "Threshold rules by name.")}
    return schemas.file_schema("Threshold rules", named, "Rules that compare metrics with limits.")


def _read_states() -> dict[str, rules.Document]:
    return {rule.name: rules.to_document(rule) for rule in ThresholdRule.objects.order_by("name")}
