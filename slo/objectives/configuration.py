"""The configuration file `slo.yaml`: load, export and JSON Schema."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import accumulate
from typing import Any

from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import (
    Comparison,
    describe_differences,
    shortest_form,
)
from controlplane.core.configuration.readers import Loaded, LoadOptions
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
    found = Comparison(
        *("SLO", FILE, _read_documents(), options, find_manual_edits(ACTIONS)),
        audit_prefix=services.audit_target(""),
        describe=_describe_changes,
    ).compare_all(dict(sorted(parsed.slos.items())), lambda _name, document: document)
    minutes = (
        services.counts_minutes(one.after) - services.counts_minutes(one.before)
        for one in found.writes
    )
    # Check the peak, because SLOs are written one by one.
    services.require_capacity(found.count_new(), max(accumulate(minutes), default=0))
    audit_rows = []
    for one in found.writes if not options.dry_run else ():
        _, row = services.write_slo(one.name, one.after, options.now)
        if row is None or row["before"] != one.before:
            raise Conflict(f"Someone else just changed {one.name}. Compare again.")
        audit_rows.append(row)
    return found.build_result(audit_rows) + Loaded(remarks=parsed.remarks)


def export_documents() -> dict[str, dict[str, Any]]:
    """Return the document of `slo.yaml` with all SLOs."""
    found = {
        name: shortest_form(
            document,
            DEFAULTS | {"rules": _find_default_rules(document)},
            partial(documents.validate, name),
        )
        for name, document in _read_documents().items()
    }
    return {FILE: {"slos": found}}


def _find_default_rules(document: documents.Document) -> list[dict[str, Any]] | None:
    """Return the default rules that can fire for the SLO's target and window; None without any."""
    target = Decimal(str(document["target"]))
    return rules.reachable_rules("default", target, document["window_days"]) or None


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


def _read_documents() -> dict[str, documents.Document]:
    rows = Slo.objects.present().order_by("name")
    return {slo.name: documents.to_document(slo) for slo in rows}


def _describe_changes(
    before: documents.Document | None, after: documents.Document
) -> Sequence[str]:
    found = []
    for one in documents.describe_changes(before, after):
        was, becomes = (text.replace("\n", "; ") or "–" for text in (one.before, one.after))
        found.append(f"{one.field}: {was} → {becomes}")
    # The texts round numbers and may look equal.
    return found or describe_differences(before, after)
