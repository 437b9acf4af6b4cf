"""The configuration file `drills.yaml`: drill schedules by switch."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import json_values
from controlplane.core.actors import Actor
from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, PlannedWrite, compare_and_write
from controlplane.core.configuration.files import read_entry_file
from controlplane.core.configuration.readers import REASON, Document, Loaded, LoadOptions
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors
from switches import publication
from switches.episodes import live_drills
from switches.models import DrillSchedule
from switches.services import registration
from switches.services.configuration import switch_pattern

from . import services

FILE, PART = "drills.yaml", "schedules"
ACTIONS = ("drill.scheduled", "drill.unscheduled")
FIELDS = ("every", "mode", "reason")
WRITTEN_AT_ONCE = 500


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Schedule the drills of the file; the first starts one interval from now.

    An unchanged schedule keeps its times.
    """
    entries, errors = read_entry_file(FILE, texts[FILE], PART)
    edited = find_manual_edits(ACTIONS)

    def compare() -> Comparison:
        found = Comparison("drill schedule", FILE, _read_states(), options, edited, dict(errors))
        return found.compare_all(entries, _check_entry)

    def write(found: Comparison) -> list[dict[str, Any]]:
        return _write(found.writes, options.actor, options.now)

    return compare_and_write(compare, publication.lock, write, options)


def export_documents() -> dict[str, Document]:
    return {FILE: {PART: _read_states()}}


def build_schema() -> Schema:
    schedule = schemas.fields(
        {
            "every": schemas.text(help="Whole days: 7d.", pattern=r"^\s*[0-9]+[dhms]\s*$"),
            "mode": schemas.choice(
                live_drills.MODES,
                "By default live; dry only counts; emergency waits for an emergency order.",
            ),
            "reason": schemas.text(help="Why the switch is rehearsed.", least=1),
        },
        ("every", "reason"),
    )
    named = {
        PART: schemas.entries(schedule, switch_pattern(with_global=False), "Drills by switch.")
    }
    return schemas.file_schema("Drill schedules", named, "Switches that are rehearsed regularly.")


def _read_states() -> dict[str, Document]:
    return {
        row.switch_id: {"every": row.interval, "mode": row.mode, "reason": row.reason}
        for row in DrillSchedule.objects.order_by("switch_id")
    }


def _check_entry(switch_id: str, fields: Mapping[str, Any]) -> Document:
    errors: Errors = {}
    json_values.refuse_unknown("", fields, FIELDS, errors)
    given = {name: value for name, value in fields.items() if value is not None}
    for name, value in given.items():
        if name in FIELDS and not isinstance(value, str):
            json_values.add_error(errors, name, "Must be a string.")
    if errors:
        raise InvalidInput(errors)
    scope, _, key = switch_id.partition(":")
    mode, reason = given.get("mode", live_drills.LIVE), given.get("reason", "")
    services.check_drillable(scope, key, mode, reason)
    days = services.parse_days(given.get("every", ""))
    return {"every": f"{days}d", "mode": mode, "reason": reason.strip()}


def _write(writes: list[PlannedWrite], actor: Actor, now: datetime) -> list[dict[str, Any]]:
    registration.register_missing([one.name for one in writes], now)
    rows = [_build_row(one, actor, now) for one in writes]
    DrillSchedule.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["switch"],
        update_fields=[
            "mode", "every_days", "next_at", "reason", "created_at", "created_by", "creator",
        ],
        batch_size=WRITTEN_AT_ONCE,
    )  # fmt: skip
    return [
        {
            "action": "drill.scheduled",
            "target": row.switch_id,
            "reason": REASON,
            "after": services.schedule_state(row),
        }
        for row in rows
    ]


def _build_row(one: PlannedWrite, actor: Actor, now: datetime) -> DrillSchedule:
    days = services.parse_days(one.after["every"])
    return DrillSchedule(
        switch_id=one.name,
        mode=one.after["mode"],
        every_days=days,
        next_at=now + timedelta(days=days),
        reason=one.after["reason"],
        created_at=now,
        created_by=actor.label,
        creator_id=actor.user_id,
    )
