"""Dead letters: streams, messages, groups, what left, and bulk jobs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchgear.cli.words import Cell, Clock, Part, cell, lines, many, number

STREAM_COLUMNS = ("*STREAM", ">DEPTH", ">PER MINUTE", "OLDEST", "NEWEST", "ALARM")
LETTER_COLUMNS = ("ID", "FAILED", ">TRIES", "*ERROR")
GROUP_COLUMNS = ("FINGERPRINT", ">LETTERS", "*ERROR", "FIRST", "LAST")
ARCHIVE_COLUMNS = (">NUMBER", "WHAT", "*LETTER, AND WHY", "WHEN", "RESTORABLE")
FAILED_COLUMNS = (">ID", "*MESSAGE", "TO", "CREATED", ">TRIES")
JOB_COLUMNS = (">JOB", "STATE", "*WHAT, AND WHY", "PROGRESS", "BEGAN")
OVER = ("completed", "failed", "cancelled")
DEFAULT = "default"
OUTBOX = "outbox"
MAX_VALUE = 2_000

Letter = Mapping[str, Any]

_JOBS = {
    "pending": Part("⚑ pending", "quiet"),
    "running": Part("◒ running", "warn"),
    "holding": Part("⚠ holding", "warn"),
    "paused": Part("◌ paused", "warn"),
    "completed": Part("✔ completed", "good"),
    "failed": Part("✖ FAILED", "bad"),
    "cancelled": Part("✖ cancelled", "bad"),
}


def stream_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    other = Part(f"on the server {one['server']}", "quiet") if one["server"] != DEFAULT else None
    origin = Part(f"from {one['origin']}", "quiet") if one["origin"] else None
    growth = one["growth_per_minute"]
    since = clock.ago(one["alerting_since"])
    return (
        lines(Part(one["name"], "name"), origin, other),
        Part(f"{one['depth']:,}", "bad" if one["alerting"] else "warn" if one["depth"] else ""),
        f"{growth:+,.3g}" if growth else "0",
        clock.ago(one["oldest_at"]),
        clock.ago(one["newest_at"]),
        Part(f"✖ since {since.removesuffix(' ago')}", "bad") if one["alerting"] else "-",
    )


def letter_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    again = Part(f"retried {many(one['retries'], 'time')} already", "warn")
    return (
        one["id"],
        clock.ago(one["failed_at"] or one["added_at"]),
        "-" if one["attempts"] is None else one["attempts"],
        lines(
            Part(one["error_type"] or "no type", "strong"),
            one["error"],
            Part(f"fingerprint {one['fingerprint']}", "quiet"),
            again if one["retries"] else None,
        ),
    )


def letter_facts(one: Letter, clock: Clock) -> list[tuple[str, object]]:
    return [
        ("error", lines(Part(one["error_type"] or "", "strong"), one["error"])),
        ("failed", clock.exactly(one["failed_at"]) if one["failed_at"] else None),
        ("tries", one["attempts"]),
        ("group", one["group"]),
        ("original id", one["original_id"]),
        ("retried", many(one["retries"], "time") if one["retries"] else None),
        ("fingerprint", one["fingerprint"]),
        ("size", f"{number(one['size_bytes'])} bytes, {many(one['fields_total'], 'field')}"),
    ]


def fields(one: Letter) -> Iterator[tuple[str, object]]:
    for name, value in one["fields"].items():
        values = value if isinstance(value, list) else [value]
        yield name, lines(*map(_value, values))


def history(one: Letter, clock: Clock) -> Iterator[tuple[str, object]]:
    for event in one["history"]:
        by = f" by {event['by']}" if event.get("by") else ""
        why = event.get("reason") or event.get("error") or ""
        yield clock.exactly(event["at"]), f"{event['kind']}{by}{f': {why}' if why else ''}"


def group_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    return (
        one["fingerprint"],
        f"{one['count']:,}",
        lines(Part(one["error_type"] or "no type", "strong"), one["sample"]),
        clock.ago(one["first_at"]),
        clock.ago(one["last_at"]),
    )


def archive_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    restored = f"restored by {one['restored_by']}" if one["restored_by"] else None
    return (
        one["id"],
        f"{one['action']}, {one['state']}",
        lines(
            cell(Part(one["stream"], "name"), f" {one['message_id']}"),
            one["reason"],
            Part(f"by {one['by']}", "quiet"),
            Part(restored or "", "quiet"),
        ),
        clock.ago(one["done_at"] or one["intended_at"]),
        clock.left(one["restorable_until"]) if one["restorable"] else "-",
    )


def failed_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    return (
        one["id"],
        lines(Part(one["title"], "strong"), Part(one["last_error"], "bad")),
        one["destination_name"] or one["destination"],
        clock.ago(one["created_at"]),
        len(one["attempts"]),
    )


def job_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    return (
        one["id"],
        job_state(one),
        lines(
            cell(f"{one['action']} ", Part(one["stream"], "name"), chosen(one["filter"])),
            one["reason"],
            Part(f"by {one['created_by']}", "quiet"),
            Part(one["hold_reason"] or "", "warn"),
        ),
        f"{one['progress']['done']:,} of {one['progress']['total']:,}",
        clock.ago(one["created_at"]),
    )


def job_state(one: Letter) -> Cell:
    stuck = Part("STUCK", "alarm") if one["stuck"] else None
    return lines(_JOBS.get(one["state"], Part(one["state"])), stuck)


def job_facts(one: Letter, clock: Clock) -> list[tuple[str, object]]:
    rate = one["progress"]["rate_per_second"]
    return [
        ("what", cell(f"{one['action']} in {one['stream']}", chosen(one["filter"]))),
        ("why", one["reason"]),
        ("by", one["created_by"]),
        ("looked at", f"{one['progress']['done']:,} of {one['progress']['total']:,}"),
        ("of these", counts(one["counts"])),
        ("speed", f"{number(rate)} a second" if rate else None),
        ("held by", Part(one["hold_reason"] or "", "warn")),
        ("approval", f"request {one['approval']}" if one["approval"] else None),
        ("began", clock.exactly(one["created_at"])),
        ("over", clock.exactly(one["finished_at"]) if one["finished_at"] else None),
        ("outcome", one["outcome"]),
        ("error", Part(one["error"] or "", "bad")),
    ]


def counts(found: Mapping[str, Any]) -> str:
    """`18 done, 2 gone, 1 skipped (1 too many retries)`."""
    said = [
        f"{value:,} {name.replace('_', ' ')}"
        for name, value in found.items()
        if isinstance(value, int) and value and name != "looked_at"
    ]
    why = found.get("why")
    reasons = [f"{n} {name.replace('_', ' ')}" for name, n in why.items()] if why else []
    return ", ".join(said) + (f" ({', '.join(reasons)})" if reasons else "")


def chosen(found: Mapping[str, Any]) -> str:
    """`, only fingerprint 3f2a`."""
    said = ", ".join(f"{name} {value}" for name, value in found.items())
    return f", only {said}" if said else ", all of it"


def plan(found: Mapping[str, Any]) -> list[tuple[str, object]]:
    """What a dry run says."""
    why = [f"{n:,} {name.replace('_', ' ')}" for name, n in found["why"].items()]
    more = "" if found["complete"] else " (there was no time to look at all)"
    return [
        ("would do", f"{many(found['eligible'], 'letter')}{more}"),
        ("would not", lines(many(found["ineligible"], "letter"), ", ".join(why))),
    ]


def _value(value: Any) -> str:
    """Text as it is; of what is none its length."""
    if isinstance(value, str):
        said = _readable(value)
    elif isinstance(value, Mapping) and "bytes" in value:
        text = value.get("text")
        said = f"({number(value['bytes'])} bytes)" if text is None else str(text)
        said += " … cut" if value.get("truncated") else ""
    else:
        said = json.dumps(value, ensure_ascii=False)
    return said if len(said) <= MAX_VALUE else f"{said[:MAX_VALUE]} … (see --json)"


def _readable(text: str) -> str:
    """JSON with its letters as letters: `김민수`, where it was sent as `\\uae40\\ubbfc\\uc218`."""
    if not text.startswith(("{", "[")) or "\\u" not in text:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text


def ordered(streams: Sequence[Letter]) -> list[Letter]:
    """As the console has them; the outbox last where it is empty."""
    return sorted(streams, key=lambda one: one["name"] == OUTBOX and not one["depth"])
