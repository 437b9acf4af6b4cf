"""Import of history from a CSV file of cumulative counters, `ts,good,total`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import InvalidInput
from slo.arithmetic.minutes import minute_of
from slo.counters import reader
from slo.models import Slo
from slo.models.counters import IMPORTED

from . import recorder
from .field_parsers import MAX_NUMBER
from .points import MAX_AHEAD
from .samples import SampleBatch

Row = tuple[datetime, float, float]
"""Time, good events and all events; the counts are cumulative."""
HEADER = ("ts", "good", "total")
BATCH_SIZE = 10_000
MAX_ERRORS = 20
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class CsvImport:
    """The outcome of an import, as numbers of points: in the file, new, and too old to import."""

    points: int
    new: int
    old: int = 0

    def __str__(self) -> str:
        known = self.points - self.new - self.old
        text = f"{self.new} points imported"
        text += f", {known} already known" if known else ""
        return text + (f", {self.old} older than the retention" if self.old else "")


@transaction.atomic(savepoint=False)
def import_points(*, slo: Slo, text_lines: Iterable[str], actor: Actor, now: datetime) -> CsvImport:
    """Import lines of `ts,good,total`: a time (RFC 3339 or Unix seconds) and cumulative counts.

    Events before the first point do not count; points before deleted history are left out.
    Importing a file again adds nothing. If any line is invalid, raise :class:`InvalidInput`, with
    errors by line, and import nothing.
    """
    sli = reader.get_or_create_sli(slo)
    parsed = _parse_lines(text_lines, now + MAX_AHEAD)
    first_retained = reader.retained_from(sli.pk)
    # Older points would be counted again, as would the increment after them.
    rows = sorted(
        row for row in parsed if first_retained is None or minute_of(row[0]) >= first_retained
    )
    new = 0
    for start in range(0, len(rows), BATCH_SIZE):
        batch = SampleBatch()
        for row in rows[start : start + BATCH_SIZE]:
            batch.add(sli.pk, IMPORTED, "", *row)
        new += recorder.record_samples(batch, now=now, at_once=True, is_noted=True)[sli.pk]
    if rows:
        audit.record(
            actor=actor,
            action="slo.points_imported",
            target=f"slo:{slo.name}",
            after={"points": len(parsed), "new": new, "from": rows[0][0], "to": rows[-1][0]},
            now=now,
        )
    return CsvImport(len(parsed), new, len(parsed) - len(rows))


def _parse_lines(lines: Iterable[str], latest: datetime) -> list[Row]:
    rows: list[Row] = []
    errors: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        columns = [column.strip() for column in line.split(",")]
        names = tuple(column.lower().strip('"\ufeff') for column in columns) if number == 1 else ()
        if names == HEADER or not any(columns):
            continue
        try:
            at, good, total = _parse_columns(columns)
            if at > latest:
                raise ValueError("ts must not be in the future.")
        except ValueError as error:
            errors[f"line {number}"] = [str(error)]
            if len(errors) >= MAX_ERRORS:
                break
            continue
        rows.append((at, good, total))
    if errors:
        raise InvalidInput(errors)
    return rows


def _parse_columns(columns: list[str]) -> Row:
    if len(columns) != len(HEADER):
        raise ValueError("Must have three columns: ts, good, total.")
    at, good, total = (column.strip('"') for column in columns)
    counts = _parse_count(good, "good"), _parse_count(total, "total")
    if counts[0] > counts[1]:
        raise ValueError("good must not be more than total.")
    try:
        moment = parse_moment(at)
    except ValueError:
        moment = LATEST
    if not EARLIEST <= moment < LATEST:
        raise ValueError("ts must be a time such as 2026-11-21T02:11:00Z, or Unix seconds.")
    return moment, *counts


def _parse_count(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_NUMBER:
        raise ValueError(f"{name} must be a number from 0 to 2^53.")
    return value


def parse_moment(text: str) -> datetime:
    """Parse RFC 3339 (UTC if without zone) or Unix seconds. Raise :class:`ValueError` otherwise."""
    try:
        at = datetime.fromtimestamp(float(text), UTC)
    except (ValueError, OverflowError, OSError):
        at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at
