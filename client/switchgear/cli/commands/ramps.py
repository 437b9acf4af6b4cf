"""Ramps: list, show, follow, advance, pause, resume, abort."""

import argparse
from collections.abc import Callable

from switchgear.cli import exits
from switchgear.cli.api_client import Document, switch_path, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import output
from switchgear.cli.formatting import StyledText, parse_time
from switchgear.cli.parser import Commands, add_dry_run, add_reason
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
    ramp = commands.group(
        "ramp",
        "ramps under way: list, show, follow, advance, pause, resume, abort",
        ("list", list_ramps, "ramps that are not over, or all", _list_options),
    )
    ramp.add("show", show, "one ramp, its steps and gates", _ramp_options)
    ramp.add("follow", follow, "one ramp until it is over", _ramp_options)
    for verb, said in VERBS.items():
        ramp.add(
            verb,
            _make_command(verb),
            said,
            _advance_options if verb == "advance" else _action_options,
        )


def list_ramps(call: CommandContext) -> int:
    query = {"state": None if call.args.all else "live", "switch": call.args.switch}
    found = call.console.get_pages("/ramps/", query, MAX_LISTED)
    if found["more"]:
        output.note_truncated(call, MAX_LISTED, "ramps; the newest are shown")
    empty = "No ramp is under way." if not call.args.all else "There was no ramp yet."
    return output.print_table(call, found["results"], views.COLUMNS, views.row, empty)


def show(call: CommandContext) -> int:
    one = _get_ramp(call)
    if not call.print_json(one):
        print_ramp(call, one)
    return exits.DONE


def follow(call: CommandContext) -> int:
    return follow_ramp(call, _get_ramp(call)["id"])


def print_ramp(call: CommandContext, one: Document) -> None:
    """Print a ramp with its steps."""
    name = "a ramp" if one["id"] is None else f"ramp {one['id']}"
    call.screen.line(StyledText(one["switch"], "name"), f"  {name}  ", views.state(one))
    clock = call.clock
    call.screen.facts(views.facts(one, clock))
    call.screen.blank_line()
    rows = [views.step_row(number, step, clock) for number, step in enumerate(one["steps"], 1)]
    call.screen.table(views.STEP_COLUMNS, rows)


def follow_ramp(call: CommandContext, ramp_id: int, begun: Callable[[], None] | None = None) -> int:
    """Follow a ramp to its end and print it; succeed if it completed.

    `begun` prints the change that began it, if following fails.
    """
    said = f"The ramp began, but it could not be followed (switchgear ramp follow {ramp_id}):"
    with call.report_if_lost(begun, said), call.screen.progress() as progress:
        for one in call.poll(f"/ramps{url_path(ramp_id)}/"):
            clock = call.clock
            what = f"{one['switch']}  {views.step_of(one)}"
            progress.update(
                what,
                _completed_steps(one, call),
                len(one["steps"]),
                views.progress_text(one, clock),
            )
            if one["state"] in views.OVER:
                break
    if not call.print_json(one):
        print_ramp(call, one)
    if one["state"] == "completed":
        return exits.DONE
    said = one["error"] or one["outcome"] or one["hold_reason"] or "see above"
    raise exits.make_exit(exits.FAILED, "ramp-over", f"The ramp is {one['state']}: {said}")


def _completed_steps(one: Document, call: CommandContext) -> float:
    """Return the completed steps and the elapsed fraction of the current dwell."""
    index = one["step_index"]
    if one["state"] == "completed" or index >= len(one["steps"]):
        return float(len(one["steps"]))
    step = one["steps"][index]
    until = parse_time(step["dwell_until"])
    if until is None or not step["dwell_seconds"]:
        return float(index)
    left = (until - call.console.now).total_seconds() / float(step["dwell_seconds"])
    return float(index) + min(1.0, max(0.0, 1.0 - left))


def _make_command(verb: str) -> Callable[[CommandContext], int]:
    def act(call: CommandContext) -> int:
        step = getattr(call.args, "step", None)
        body = {
            "reason": call.args.reason,
            "step_index": None if step is None else step - 1,
            "dry_run": call.args.dry_run or None,
        }
        path = f"/ramps{url_path(_ramp_id(call))}/{verb}"
        one = call.console.send("POST", path, body).document
        if not call.print_json(one):
            if one.get("dry_run"):
                call.screen.line(output.DRY_RUN)
            print_ramp(call, one)
        return exits.DONE

    return act


def _get_ramp(call: CommandContext) -> Document:
    one: Document = call.console.get(f"/ramps{url_path(_ramp_id(call))}/")
    return one


def _ramp_id(call: CommandContext) -> int:
    """Return the ramp given, or the running one of the switch given."""
    said: int | str = call.args.ramp
    if isinstance(said, int):
        return said
    live: int | None = call.console.get(f"{switch_path(said)}/")["ramp"]
    if live is None:
        detail = f"No ramp of {said} is under way. All there were: switchgear ramp --all"
        raise exits.make_exit(exits.NOT_FOUND, "no-ramp", detail)
    return live


def _parse_ramp(text: str) -> int | str:
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        return resolve_switch_id(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a ramp's number nor a switch such as feature:chat"
        ) from None


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also those that are over")
    parser.add_argument("--switch", metavar="SWITCH", help="only of this one")


def _ramp_options(parser: argparse.ArgumentParser) -> None:
    said = "its number, or the switch whose ramp is under way"
    parser.add_argument("ramp", type=_parse_ramp, metavar="RAMP", help=said)


def _action_options(parser: argparse.ArgumentParser) -> None:
    _ramp_options(parser)
    add_reason(parser, "why; it is kept in the audit trail")
    add_dry_run(parser)


def _advance_options(parser: argparse.ArgumentParser) -> None:
    _action_options(parser)
    said = "the step to be left, from 1, as you saw it; at another nothing happens"
    parser.add_argument("--step", type=int, metavar="N", help=said)
