"""`manage.py audit`: verify, export, anchor and question the audit trail, or verify an export."""

import csv
import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from controlplane.core.actions import Action
from controlplane.core.audit import chain, services, who_could
from controlplane.core.authority import Period
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.shell import ShellCommand, shell_actor


class Command(ShellCommand):
    help = "Verify, export, anchor or question the audit trail."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        verify = commands.add_parser(
            "verify",
            help="verify the audit trail; exit 1 and name the first bad row if it is broken",
        )
        verify.add_argument(
            "--file", type=Path, help="a JSONL export to verify instead of the database"
        )
        verify.add_argument(
            "--anchor",
            action="append",
            default=[],
            metavar="ID:HASH",
            help="recorded head that must match, too",
        )
        out = commands.add_parser("export", help="write all rows to standard output")
        out.add_argument("--format", choices=["jsonl", "csv"], default="jsonl")
        could = commands.add_parser(
            "who-could",
            help="list who could have done an action on a resource on a day (UTC)",
        )
        could.add_argument("action", choices=[action.value for action in Action])
        could.add_argument("resource", help="such as segment:finance")
        could.add_argument("day", type=date.fromisoformat, help="YYYY-MM-DD, in UTC")
        commands.add_parser("anchor", help="publish the head of the chain as an anchor")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["command"].replace("-", "_"))(options)

    def verify(self, options: dict[str, Any]) -> None:
        anchors_given = _parse_anchors(options["anchor"])
        file: Path | None = options["file"]
        known = {} if file else services.find_recorded_heads()
        if contradicted := sorted(
            id for id in anchors_given.keys() & known if anchors_given[id] != known[id]
        ):
            self.fail(f"row {contradicted[0]}: the given anchor differs from the recorded hash")
        anchors = {**known, **anchors_given}
        verdict = chain.verify(_read_export(file) if file else services.read_trail(), anchors)
        if not verdict.intact:
            self.fail(f"row {verdict.bad_id}: {verdict.problem}")
        self.line(f"intact: {verdict.rows} rows, head {verdict.head_id}:{verdict.head_hash}")
        since = max(anchors, default=0)
        plural = "" if len(anchors) == 1 else "s"
        self.stderr.write(
            f"Checked against {len(anchors)} recorded head{plural}, the last at row {since}."
            f" Not checked: whether rows after row {max(since, verdict.head_id)} were deleted."
            " Compare with an anchor kept elsewhere: --anchor ID:HASH."
        )

    def export(self, options: dict[str, Any]) -> None:
        if options["format"] == "csv":
            csv.writer(sys.stdout, quoting=csv.QUOTE_ALL).writerows(
                services.build_csv_rows(services.read_trail())
            )
            return
        for row in services.read_trail():
            self.line(json.dumps(row))

    def who_could(self, options: dict[str, Any]) -> None:
        start = datetime.combine(options["day"], time(), UTC)
        action = Action(options["action"])
        history = who_could.read_history(action, options["resource"], start, None, db_now())
        for rule in history.rules:
            owner = rule.owner.name if rule.owner else "nobody"
            text = who_could.describe_rule(rule)
            self.line(f"{_format_period(rule.period)}  owned by {owner}: {text}")
        for holder in history.holders:
            periods = ", ".join(map(_format_period, holder.periods))
            self.line(f"{periods}  {holder.kind} {holder.name}: {holder.because}")
        if history.begins_at is None:
            self.stderr.write("The trail is empty, so nothing is known.")
        elif history.begins_at > start:
            begins = f"{history.begins_at:%Y-%m-%d %H:%M:%S}"
            self.stderr.write(f"The trail begins at {begins}. Nothing is known of earlier times.")
        glass = "approvers with break-glass, and " if action in who_could.RELEASES else ""
        self.stderr.write(f"Not listed: {glass}people at the server's shell. Times are in UTC.")

    def anchor(self, options: dict[str, Any]) -> None:
        entry = services.record_anchor(actor=shell_actor(), now=db_now())
        self.line(f"{entry.id}:{entry.hash}")


def _format_period(period: Period) -> str:
    return f"{period.start:%Y-%m-%d %H:%M:%S} to {period.end:%Y-%m-%d %H:%M:%S}"


def _parse_anchors(anchors_given: list[str]) -> dict[int, str]:
    anchors = {}
    for text in anchors_given:
        number, _, digest = text.partition(":")
        if not (number.isascii() and number.isdigit() and len(digest) == 64):
            raise InvalidInput({"--anchor": [f"{text!r} is not ID:HASH."]})
        anchors[int(number)] = digest
    return anchors


def _read_export(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                row = json.loads(line)
                if not isinstance(row, dict) or {*chain.FIELDS, "hash"} - row.keys():
                    raise InvalidInput({"--file": [f"line {number} is not an audit row."]})
                yield row
    except (OSError, ValueError) as error:
        raise InvalidInput({"--file": [str(error)]}) from error
