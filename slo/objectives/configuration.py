"""The configuration file `slo.yaml`: load, export and JSON Schema."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import shortest_form
from controlplane.core.configuration.readers import (
    CHANGED,
    KEPT,
    NEW,
    SAME,
    EntryChange,
    Loaded,
    LoadOptions,
)
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import Conflict
from slo.models import Slo
from slo.models.objective import HOLD_RAMPS, PROMETHEUS, PUSH, TRIP

from . import documents, metadata, names, rules, services, slo_file, sources_and_actions

FILE = slo_file.FILE
ACTIONS = ("slo.created", "slo.changed", "slo.removed")
DEFAULTS = {"kind": "availability", "window_days": 30, "min_events": 0, "source": {"type": PUSH}}
SERVICE = r"^[a-z0-9-]{1,60}$"
SHARE = {
    "type": ["number", "string"],
    "description": "A share: 99.9% or 0.999.",
}


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Create or change the SLOs of the file; with `dry_run`, only return the changes.

    With `keep_edited`, SLOs edited by hand do not change; with `only_new`, none changes. Raise
    :class:`InvalidInput` naming file and key, or :class:`Conflict` if there are too many SLOs.
    """
    parsed = slo_file.parse_slo_file(texts[FILE])
    known = {slo.name: documents.to_document(slo) for slo in Slo.objects.present()}
    edited = find_manual_edits(ACTIONS)
    changes, audit_rows = [], []
    for name in sorted(parsed.slos):
        before, after = known.get(name), parsed.slos[name]
        by_hand = edited.get(services.audit_target(name), "")
        if options.keeps(by_hand, is_present=before is not None):
            changes.append(EntryChange("SLO", name, KEPT, edited=by_hand))
            continue
        if before == after:
            changes.append(EntryChange("SLO", name, SAME))
            continue
        lines = tuple(
            f"{one.field}: {_join_lines(one.before)} → {_join_lines(one.after)}"
            for one in documents.describe_changes(before, after)
        )
        outcome = NEW if before is None else CHANGED
        changes.append(EntryChange("SLO", name, outcome, lines, by_hand))
        if not options.dry_run:
            _, row = services.write_slo(name, after, options.now)
            if row is None or row["before"] != before:
                raise Conflict(f"Someone else just changed {name}. Compare again.")
            audit_rows.append(row)
    elsewhere = tuple(f"SLO {name}" for name in sorted(known.keys() - parsed.slos.keys()))
    return Loaded(tuple(changes), parsed.remarks, elsewhere, audit_rows)


def export_documents() -> dict[str, dict[str, Any]]:
    """Return the document of `slo.yaml` with all SLOs."""
    found = {
        slo.name: shortest_form(
            documents.to_document(slo), DEFAULTS, partial(documents.validate, slo.name)
        )
        for slo in Slo.objects.present().order_by("name")
    }
    return {FILE: {"slos": found}}


def build_schema() -> Schema:
    """Return the JSON Schema of `slo.yaml`."""
    properties: dict[str, Schema] = {
        "service": schemas.text(60, "Service of the SLOs that name no other.", pattern=SERVICE),
        "availability": schemas.described(SHARE, "Target of the SLO SERVICE-availability: 99.9%."),
        "error_rate": schemas.described(SHARE, "Target of the SLO SERVICE-error-rate: < 1%."),
        "burn_rate_alerts": schemas.list_of(
            {"anyOf": [_alert_schema(), schemas.text(help="1h burn rate > 14")]},
            help="Rules of SLOs without their own rules.",
        ),
        "slos": schemas.entries(_slo_schema(), f"^{names.NAME}$", "SLOs by name."),
    }
    schema = schemas.file_schema("SLOs", properties, "Service level objectives of Switchgear.")
    latency = schemas.text(help="Latency of this percentile: 300ms or 3s.")
    return {**schema, "patternProperties": {r"^p[1-9][0-9]?(\.[0-9]+)?_latency$": latency}}


def _metadata_schema() -> Schema:
    value = {"anyOf": [schemas.text(metadata.MAX_VALUE_LENGTH), schemas.list_of(schemas.text())]}
    return schemas.fields(
        {
            **{name: schemas.text(metadata.MAX_VALUE_LENGTH) for name in metadata.TEXTS},
            **{name: schemas.entries(value) for name in metadata.MAPS},
        },
        help="Names and labels of the imported document; without effect.",
    )


def _alert_schema() -> Schema:
    return schemas.fields(
        {
            "window": schemas.text(help="1h"),
            "short": schemas.text(help="A twelfth of the window by default."),
            "burn_rate": schemas.number(0),
            "severity": schemas.choice(rules.SEVERITIES),
        }
    )


def _slo_schema() -> Schema:
    rule = schemas.fields(
        {
            "long": schemas.text(),
            "short": schemas.text(),
            "burn_rate": schemas.number(0),
            "severity": schemas.choice(rules.SEVERITIES),
        },
        ("long", "burn_rate", "severity"),
    )
    source = schemas.fields(
        {
            "type": schemas.choice((PUSH, PROMETHEUS)),
            "url": schemas.web_url(sources_and_actions.MAX_URL_LENGTH),
            "good": schemas.text(sources_and_actions.MAX_QUERY_LENGTH),
            "total": schemas.text(sources_and_actions.MAX_QUERY_LENGTH),
        }
    )
    action = schemas.fields(
        {
            "on": schemas.choice(sources_and_actions.ON),
            "do": schemas.choice((TRIP, HOLD_RAMPS)),
            "on_unknown": schemas.choice(sources_and_actions.ON_UNKNOWN),
            "switch": schemas.text(),
            "expires_in": schemas.text(),
        },
        ("do",),
    )
    properties = {
        "service": schemas.text(60),
        "kind": schemas.choice(documents.KINDS),
        "target": SHARE,
        "window_days": schemas.whole(1, documents.MAX_DAYS),
        "threshold_ms": schemas.number(0, 1e9),
        "source": source,
        "rules": schemas.list_of(rule, rules.MAX_RULES),
        "min_events": schemas.whole(0, documents.MAX_EVENTS),
        "actions": schemas.list_of(action, sources_and_actions.MAX_ACTIONS),
        "description": schemas.text(4000),
        "owner": schemas.text(200),
        "runbook_url": schemas.web_url(500),
        "slice_target": schemas.number(0, 1, "Count minutes with this share of good events."),
        "metadata": _metadata_schema(),
    }
    return schemas.fields({name: properties[name] for name in documents.FIELDS}, ("target",))


def _join_lines(text: str) -> str:
    return text.replace("\n", "; ") or "–"
