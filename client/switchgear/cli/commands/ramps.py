"""Ramps: how far each has come, and letting one go on, pausing, resuming or aborting it."""

import argparse
from collections.abc import Callable

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.commands import showing
from switchgear.cli.console import Document, place, switch_path
from switchgear.cli.parser import Commands, dry_run, reason
from switchgear.cli.views import ramps as views
from switchgear.cli.words import Part, parse
from switchgear.evaluation.snapshot import switch_id

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
        ("list", listed, "ramps that are not over, or all", _list),
    )
    ramp.add("show", show, "one ramp, its steps and gates", _which)
    ramp.add("follow", follow, "one ramp until it is over", _which)
    for verb, said in VERBS.items():
        ramp.add(verb, _acting(verb), said, _advance if verb == "advance" else _act)


def listed(call: Call) -> int:
    query = {"state": None if call.args.all else "live", "switch": call.args.switch}
    found = call.console.pages("/ramps/", query, MAX_LISTED)
    if found["more"]:
        showing.cut(call, MAX_LISTED, "ramps; the newest are shown")
    empty = "No ramp is under way." if not call.args.all else "There was no ramp yet."
    return showing.table(call, found["results"], views.COLUMNS, views.row, empty)


def show(call: Call) -> int:
    one = _found(call)
    if not call.show(one):
        show_one(call, one)
    return exits.DONE


def follow(call: Call) -> int:
    return follow_one(call, _found(call)["id"])


def show_one(call: Call, one: Document) -> None:
    """A ramp with its steps, in words."""
    name = "a ramp" if one["id"] is None else f"ramp {one['id']}"
    call.screen.line(Part(one["switch"], "name"), f"  {name}  ", views.state(one))
    clock = call.clock
    call.screen.facts(views.facts(one, clock))
    call.screen.gap()
    rows = [views.step_row(number, step, clock) for number, step in enumerate(one["steps"], 1)]
    call.screen.table(views.STEP_COLUMNS, rows)


def follow_one(call: Call, ramp_id: int, begun: Callable[[], None] | None = None) -> int:
    """Until it is over; then it is shown. It came to a good end if all of it flows. `begun` tells
    what began it, if it can't be followed to its end."""
    said = f"The ramp began, but it could not be followed (switchgear ramp follow {ramp_id}):"
    with call.unless_lost(begun, said), call.screen.progress() as progress:
        for one in call.following(f"/ramps{place(ramp_id)}/"):
            clock = call.clock
            what = f"{one['switch']}  {views.step_of(one)}"
            progress.tell(what, _done(one, call), len(one["steps"]), views.told(one, clock))
            if one["state"] in views.OVER:
                break
    if not call.show(one):
        show_one(call, one)
    if one["state"] == "completed":
        return exits.DONE
    said = one["error"] or one["outcome"] or one["hold_reason"] or "see above"
    raise exits.ended(exits.FAILED, "ramp-over", f"The ramp is {one['state']}: {said}")


def _done(one: Document, call: Call) -> float:
    """Steps that are over, and the part of this one's dwell that is."""
    index = one["step_index"]
    if one["state"] == "completed" or index >= len(one["steps"]):
        return float(len(one["steps"]))
    step = one["steps"][index]
    until = parse(step["dwell_until"])
    if until is None or not step["dwell_seconds"]:
        return float(index)
    left = (until - call.console.now).total_seconds() / float(step["dwell_seconds"])
    return float(index) + min(1.0, max(0.0, 1.0 - left))


def _acting(verb: str) -> Callable[[Call], int]:
    def act(call: Call) -> int:
        step = getattr(call.args, "step", None)
        body = {
            "reason": call.args.reason,
            "step_index": None if step is None else step - 1,
            "dry_run": call.args.dry_run or None,
        }
        path = f"/ramps{place(_id(call))}/{verb}"
        one = call.console.send("POST", path, body).document
        if not call.show(one):
            if one.get("dry_run"):
                call.screen.line(showing.DRY_RUN)
            show_one(call, one)
        return exits.DONE

    return act


def _found(call: Call) -> Document:
    one: Document = call.console.get(f"/ramps{place(_id(call))}/")
    return one


def _id(call: Call) -> int:
    """As it was said; of a switch the ramp that is under way."""
    said: int | str = call.args.ramp
    if isinstance(said, int):
        return said
    live: int | None = call.console.get(f"{switch_path(said)}/")["ramp"]
    if live is None:
        detail = f"No ramp of {said} is under way. All there were: switchgear ramp --all"
        raise exits.ended(exits.NOT_FOUND, "no-ramp", detail)
    return live


def _number_or_switch(text: str) -> int | str:
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        return switch_id(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a ramp's number nor a switch such as feature:chat"
        ) from None


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also those that are over")
    parser.add_argument("--switch", metavar="SWITCH", help="only of this one")


def _which(parser: argparse.ArgumentParser) -> None:
    said = "its number, or the switch whose ramp is under way"
    parser.add_argument("ramp", type=_number_or_switch, metavar="RAMP", help=said)


def _act(parser: argparse.ArgumentParser) -> None:
    _which(parser)
    reason(parser, "why; it is kept in the audit trail")
    dry_run(parser)


def _advance(parser: argparse.ArgumentParser) -> None:
    _act(parser)
    said = "the step to be left, from 1, as you saw it; at another nothing happens"
    parser.add_argument("--step", type=int, metavar="N", help=said)
