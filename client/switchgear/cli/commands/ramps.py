"""Commands for ramps: `ramp list|show|follow|advance|pause|resume|abort`."""

import argparse
from collections.abc import Callable
from functools import partial

from switchgear.cli import exits, output
from switchgear.cli.api_client import Document, switch_path, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import StyledText, parse_time
from switchgear.cli.parser import DRY_RUN, Commands, option, reason_option
from switchgear.cli.views import ramps as views
from switchgear.evaluation.snapshot import resolve_switch_id

MAX_LISTED = 50
VERBS = {
    "advance": "start the next step now, without waiting for the dwell time",
    "pause": "stay at the current percentage until resumed",
    "resume": "resume a paused ramp",
    "abort": "stop the ramp and engage the switch again immediately",
}


def register(commands: Commands) -> None:
    ramps = commands.add_group(
        "ramp",
        "ramps: list, show, follow, advance, pause, resume, abort",
        list_ramps,
        "list unfinished ramps",
        option("--all", action="store_true", help="include finished ramps"),
        option("--switch", metavar="SWITCH", help="only ramps of this switch"),
    )
    ramp = option(
        "ramp",
        type=_parse_ramp,
        metavar="RAMP",
        help="ramp number, or the switch that is ramping",
    )
    step = option(
        "--step",
        type=int,
        metavar="N",
        help=(
            "expected current step, counted from 1; nothing changes if the ramp is at another step"
        ),
    )
    why = reason_option("reason for the audit trail")
    ramps.add("show", show_ramp, "show a ramp, its steps and gates", ramp)
    ramps.add("follow", follow_given_ramp, "show the progress of a ramp until it finishes", ramp)
    for verb, summary in VERBS.items():
        more = (step,) if verb == "advance" else ()
        ramps.add(verb, partial(_change_ramp, verb), summary, ramp, why, DRY_RUN, *more)


def list_ramps(call: CommandContext) -> None:
    query = {"state": None if call.args.all else "live", "switch": call.args.switch}
    found = output.get_items(call, "/ramps/", query, MAX_LISTED, "ramps; showing the newest")
    empty = "No unfinished ramps." if not call.args.all else "No ramps yet."
    output.print_table(call, found, views.COLUMNS, views.ramp_row, empty)


def show_ramp(call: CommandContext) -> None:
    print_ramp(call, _get_ramp(call))


def follow_given_ramp(call: CommandContext) -> None:
    follow_ramp(call, _get_ramp(call)["id"])


def print_ramp(call: CommandContext, one: Document) -> None:
    """Print a ramp with its steps, as JSON or as a table."""
    if call.print_json(one):
        return
    name = "a ramp" if one["id"] is None else f"ramp {one['id']}"
    call.screen.line(StyledText(one["switch"], "name"), f"  {name}  ", views.format_state(one))
    clock = call.clock
    call.screen.facts(views.ramp_facts(one, clock))
    call.screen.blank_line()
    rows = [views.step_row(number, step, clock) for number, step in enumerate(one["steps"], 1)]
    call.screen.table(views.STEP_COLUMNS, rows)


def follow_ramp(
    call: CommandContext, ramp_id: int, begun: Callable[[], None] | None = None
) -> None:
    """Show the progress of a ramp until it is over, and print it. Raise unless it completed.

    If the progress can't be followed, `begun` is called: it prints the console's response to the
    request that started the ramp.
    """
    given = (
        "The ramp started, but its progress can't be shown. To retry: switchgear ramp follow"
        f" {ramp_id}. Cause:"
    )
    with call.report_if_lost(begun, given), call.screen.progress() as progress:
        for one in call.poll(f"/ramps{url_path(ramp_id)}/"):
            clock = call.clock
            what = f"{one['switch']}  {views.step_of(one)}"
            done, total = _completed_steps(one, call), len(one["steps"])
            progress.update(what, done, total, views.progress_text(one, clock))
            if one["state"] in views.OVER:
                break
    print_ramp(call, one)
    if one["state"] != "completed":
        given = one["error"] or one["outcome"] or one["hold_reason"] or "see above"
        raise exits.make_exit(exits.FAILED, "ramp-over", f"Ramp {one['state']}: {given}")


def _completed_steps(one: Document, call: CommandContext) -> float:
    """Return the number of completed steps, plus the elapsed share of the current dwell time."""
    index = one["step_index"]
    if one["state"] == "completed" or index >= len(one["steps"]):
        return float(len(one["steps"]))
    step = one["steps"][index]
    until = parse_time(step["dwell_until"])
    if until is None or not step["dwell_seconds"]:
        return float(index)
    left = (until - call.console.now).total_seconds() / float(step["dwell_seconds"])
    return float(index) + min(1.0, max(0.0, 1.0 - left))


def _change_ramp(verb: str, call: CommandContext) -> None:
    step = getattr(call.args, "step", None)
    body = {"reason": call.args.reason, "step_index": None if step is None else step - 1}
    one = call.send("POST", f"/ramps{url_path(_ramp_id(call))}/{verb}", body)
    if one.get("dry_run") and not call.screen.as_json:
        call.screen.line(output.DRY_RUN)
    print_ramp(call, one)


def _get_ramp(call: CommandContext) -> Document:
    one: Document = call.console.get(f"/ramps{url_path(_ramp_id(call))}/")
    return one


def _ramp_id(call: CommandContext) -> int:
    """Return the id of the ramp on the command line: the id itself, or a switch's live ramp."""
    given: int | str = call.args.ramp
    if isinstance(given, int):
        return given
    live: int | None = call.console.get(f"{switch_path(given)}/")["ramp"]
    if live is None:
        detail = f"{given} is not ramping. To list all ramps: switchgear ramp --all"
        raise exits.make_exit(exits.NOT_FOUND, "no-ramp", detail)
    return live


def _parse_ramp(text: str) -> int | str:
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        return resolve_switch_id(text)
    except ValueError:
        message = f"{text!r} is neither a ramp number nor a switch such as feature:chat"
        raise argparse.ArgumentTypeError(message) from None
