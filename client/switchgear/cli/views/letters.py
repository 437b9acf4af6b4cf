"""Table rows, and pairs of name and value, that show dead letters and their bulk jobs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from switchgear.cli.formatters import Cell, Clock, StyledText, cell, format_number, pluralize, stack

STREAM_COLUMNS = ("*STREAM", ">DEPTH", ">PER MINUTE", "OLDEST", "NEWEST", "ALARM")
LETTER_COLUMNS = ("ID", "FAILED", ">ATTEMPTS", "*ERROR")
GROUP_COLUMNS = ("FINGERPRINT", ">LETTERS", "*ERROR", "FIRST", "LAST")
ARCHIVE_COLUMNS = (">NUMBER", "ACTION", "*LETTER AND REASON", "WHEN", "RESTORABLE")
FAILED_COLUMNS = (">ID", "*MESSAGE", "TO", "CREATED", ">ATTEMPTS")
JOB_COLUMNS = (">JOB", "STATE", "*ACTION AND REASON", "PROGRESS", "STARTED")
OVER = ("completed", "failed", "cancelled")
DEFAULT = "default"
OUTBOX = "outbox"
MAX_VALUE = 2_000

Letter = Mapping[str, Any]

_JOBS = {
    "pending": StyledText("⚑ pending", "quiet"),
    "running": StyledText("◒ running", "warn"),
    "holding": StyledText("⚠ holding", "warn"),
    "paused": StyledText("◌ paused", "warn"),
    "completed": StyledText("✔ completed", "good"),
    "failed": StyledText("✖ FAILED", "bad"),
    "cancelled": StyledText("✖ cancelled", "bad"),
}
_RESULTS = {"critical": ("✖", "bad"), "warning": ("⚠", "warn")}


def stream_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    other = f"on Redis server {one['server']}" if one["server"] != DEFAULT else ""
    origin = f"from {one['origin']}" if one["origin"] else ""
    notes = (StyledText(text, "quiet") for text in (origin, other))
    growth = one["growth_per_minute"]
    since = clock.ago(one["alerting_since"])
    style = "bad" if one["alerting"] else "warn" if one["depth"] else ""
    return (
        stack(StyledText(one["name"], "name"), *notes),
        StyledText(f"{one['depth']:,}", style),
        f"{growth:+,.3g}" if growth else "0",
        clock.ago(one["oldest_at"]),
        clock.ago(one["newest_at"]),
        StyledText(f"✖ since {since.removesuffix(' ago')}", "bad") if one["alerting"] else "-",
    )


def letter_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    again = StyledText(f"retried {pluralize(one['retries'], 'time')} already", "warn")
    return (
        one["id"],
        clock.ago(one["failed_at"] or one["added_at"]),
        "-" if one["attempts"] is None else one["attempts"],
        stack(
            StyledText(one["error_type"] or "(no type)", "strong"),
            one["error"],
            StyledText(f"fingerprint {one['fingerprint']}", "quiet"),
            again if one["retries"] else None,
        ),
    )


def letter_facts(one: Letter, clock: Clock) -> list[tuple[str, object]]:
    size = f"{format_number(one['size_bytes'])} bytes, {pluralize(one['fields_total'], 'field')}"
    return [
        ("error", stack(StyledText(one["error_type"] or "", "strong"), one["error"])),
        ("failed", clock.exact_time(one["failed_at"]) if one["failed_at"] else None),
        ("attempts", one["attempts"]),
        ("group", one["group"]),
        ("original ID", one["original_id"]),
        ("retried", pluralize(one["retries"], "time") if one["retries"] else None),
        ("fingerprint", one["fingerprint"]),
        ("size", size),
    ]


def letter_fields(one: Letter) -> Iterator[tuple[str, object]]:
    for name, value in one["fields"].items():
        values = value if isinstance(value, list) else [value]
        yield name, stack(*map(_format_value, values))


def letter_history(one: Letter, clock: Clock) -> Iterator[tuple[str, object]]:
    for event in one["history"]:
        by = f" by {event['by']}" if event.get("by") else ""
        why = event.get("reason") or event.get("error") or ""
        yield clock.exact_time(event["at"]), f"{event['kind']}{by}{f': {why}' if why else ''}"


def group_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    return (
        one["fingerprint"],
        f"{one['count']:,}",
        stack(StyledText(one["error_type"] or "(no type)", "strong"), one["sample"]),
        clock.ago(one["first_at"]),
        clock.ago(one["last_at"]),
    )


def archive_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    restored = f"restored by {one['restored_by']}" if one["restored_by"] else None
    return (
        one["id"],
        f"{one['action']}, {one['state']}",
        stack(
            cell(StyledText(one["stream"], "name"), f" {one['message_id']}"),
            one["reason"],
            StyledText(f"by {one['by']}", "quiet"),
            StyledText(restored or "", "quiet"),
        ),
        clock.ago(one["done_at"] or one["intended_at"]),
        clock.time_left(one["restorable_until"]) if one["restorable"] else "-",
    )


def failed_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    return (
        one["id"],
        stack(StyledText(one["title"], "strong"), StyledText(one["last_error"], "bad")),
        one["destination_name"] or one["destination"],
        clock.ago(one["created_at"]),
        len(one["attempts"]),
    )


def job_row(one: Letter, clock: Clock) -> tuple[object, ...]:
    stream = StyledText(one["stream"], "name")
    return (
        one["id"],
        format_job_state(one),
        stack(
            cell(f"{one['action']} ", stream, filter_text(one["filter"])),
            one["reason"],
            StyledText(f"by {one['created_by']}", "quiet"),
            StyledText(one["hold_reason"] or "", "warn"),
        ),
        f"{one['progress']['done']:,} of {one['progress']['total']:,}",
        clock.ago(one["created_at"]),
    )


def format_job_state(one: Letter) -> Cell:
    stuck = StyledText("STUCK", "alarm") if one["stuck"] else None
    state = _JOBS.get(one["state"], StyledText(one["state"]))
    if one["state"] == "completed" and one.get("result"):
        state = _format_result(one["result"])
    return stack(state, stuck)


def _format_result(found: Mapping[str, Any]) -> StyledText:
    """Return what is known of a retry's sent letters: `✖ 20 sent, 20 failed again`."""
    sign, style = _RESULTS.get(found["severity"], ("✔", "quiet"))
    return StyledText(f"{sign} {found['text']}", style)


def job_facts(one: Letter, clock: Clock) -> list[tuple[str, object]]:
    rate = one["progress"]["rate_per_second"]
    return [
        ("action", cell(f"{one['action']} in {one['stream']}", filter_text(one["filter"]))),
        ("reason", one["reason"]),
        ("by", one["created_by"]),
        ("checked", f"{one['progress']['done']:,} of {one['progress']['total']:,}"),
        ("results", format_counts(one["counts"])),
        ("retried", _format_result(one["result"]) if one.get("result") else None),
        ("speed", f"{format_number(rate)} per second" if rate else None),
        ("holding", StyledText(one["hold_reason"] or "", "warn")),
        ("approval", f"request {one['approval']}" if one["approval"] else None),
        ("started", clock.exact_time(one["created_at"])),
        ("finished", clock.exact_time(one["finished_at"]) if one["finished_at"] else None),
        ("outcome", one["outcome"]),
        ("error", StyledText(one["error"] or "", "bad")),
    ]


def format_counts(found: Mapping[str, Any]) -> str:
    """Return a job's counts: `18 done, 2 gone, 1 skipped (1 too many retries)`."""
    shown = [
        f"{value:,} {name.replace('_', ' ')}"
        for name, value in found.items()
        if isinstance(value, int) and value and name != "looked_at"
    ]
    why = found.get("why")
    reasons = [f"{n} {name.replace('_', ' ')}" for name, n in why.items()] if why else []
    return ", ".join(shown) + (f" ({', '.join(reasons)})" if reasons else "")


def filter_text(found: Mapping[str, Any]) -> str:
    """Return a job's filter as text: `, only fingerprint 3f2a`, or without one `, all letters`."""
    shown = ", ".join(f"{name} {value}" for name, value in found.items())
    return f", only {shown}" if shown else ", all letters"


def plan_facts(found: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the result of a dry run as pairs of name and value: eligible and other letters."""
    why = [f"{n:,} {name.replace('_', ' ')}" for name, n in found["why"].items()]
    more = "" if found["complete"] else " (incomplete: time ran out)"
    return [
        ("eligible", f"{pluralize(found['eligible'], 'letter')}{more}"),
        ("not eligible", stack(pluralize(found["ineligible"], "letter"), ", ".join(why))),
    ]


def _format_value(value: Any) -> str:
    """Return text as it is, binary data as its size, other values as JSON."""
    if isinstance(value, str):
        shown = _decode_escapes(value)
    elif isinstance(value, Mapping) and "bytes" in value:
        text = value.get("text")
        shown = f"({format_number(value['bytes'])} bytes)" if text is None else str(text)
        shown += " … truncated" if value.get("truncated") else ""
    else:
        shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= MAX_VALUE else f"{shown[:MAX_VALUE]} … (see --json)"


def _decode_escapes(text: str) -> str:
    """Return JSON text with its Unicode escapes decoded."""
    if not text.startswith(("{", "[")) or "\\u" not in text:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text
