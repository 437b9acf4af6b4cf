"""Commands for ramps: `ramp list|show|follow|advance|pause|resume|abort`."""

import argparse
from collections.abc import Callable
from functools import partial

from switchgear.cli import exits
from switchgear.cli.api_client import Document, switch_path, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import output
from switchgear.cli.formatters import StyledText, parse_time
from switchgear.cli.parser import DRY_RUN, Commands, option, reason_option
from switchgear.cli.views import ramps as views
from switchgear.evaluation.snapshot import resolve_switch_id

MAX_LISTED = 50
VERBS = {
    "advance": "go on to the next step now, past the rest of the dwell",
    "pause": "stay at this share until it is resumed",
    "resume": "go on where it was paused",
    "abort": "back to nothing at once: the switch is engaged again",
}


def register(commands: Commands) -> None:
    ramps = commands.add_group(
        "ramp",
        "ramps under way: list, show, follow, advance, pause, resume, abort",
        list_ramps,
        "ramps that are not over, or all",
        option("--all", action="store_true", help="also those that are over"),
        option("--switch", metavar="SWITCH", help="only of this one"),
    )
    ramp = option(
        "ramp",
        type=_parse_ramp,
        metavar="RAMP",
        help="its number, or the switch whose ramp is under way",
    )
    step = option(
        "--step",
        type=int,
        metavar="N",
        help="the step to be left, from 1, as you saw it; at another nothing happens",
    )
    why = reason_option("why; it is kept in the audit trail")
    ramps.add("show", show_ramp, "one ramp, its steps and gates", ramp)
    ramps.add("follow", follow_given_ramp, "one ramp until it is over", ramp)
    for verb, summary in VERBS.items():
        more = (step,) if verb == "advance" else ()
        ramps.add(verb, partial(_change_ramp, verb), summary, ramp, why, DRY_RUN, *more)


def list_ramps(call: CommandContext) -> None:
    query = {"state": None if call.args.all else "live", "switch": call.args.switch}
    found = output.get_items(call, "/ramps/", query, MAX_LISTED, "ramps; the newest are shown")
    empty = "No ramp is under way." if not call.args.all else "There was no ramp yet."
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
    given = f"The ramp began, but it could not be followed (switchgear ramp follow {ramp_id}):"
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
        raise exits.make_exit(exits.FAILED, "ramp-over", f"The ramp is {one['state']}: {given}")


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
        detail = f"No ramp of {given} is under way. All there were: switchgear ramp --all"
        raise exits.make_exit(exits.NOT_FOUND, "no-ramp", detail)
    return live


def _parse_ramp(text: str) -> int | str:
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        return resolve_switch_id(text)
    except ValueError:
        message = f"{text!r} is neither a ramp's number nor a switch such as feature:chat"
        raise argparse.ArgumentTypeError(message) from None
