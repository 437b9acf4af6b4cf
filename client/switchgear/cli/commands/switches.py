"""What is stopped, stopping it, and letting it run again."""

import argparse
import time

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.commands import releasing, showing
from switchgear.cli.console import Document, switch_path
from switchgear.cli.parser import (
    Commands,
    break_glass,
    broken,
    dry_run,
    duration,
    of_type,
    reason,
    switch,
    whole,
)
from switchgear.cli.views import switches as views
from switchgear.cli.words import Clock, Part, cell, flat, moment_of
from switchgear.evaluation.scopes import GLOBAL_ID

WAIT_SECONDS = 60
FOR = "24h"
MAX_EPISODES = 50
_BESIDE = ("approval", "review", "notice")
ON_EXPIRY = ("hold", "ramp", "release")
PROOF = (
    "With --wait it ends with 1 if there is no proof of effect, though it is engaged, even if it"
    " waits for an approval too (6)."
)
WHY = "what is wrong, where or why (at least 10 letters, and not vague)"


def register(commands: Commands) -> None:
    commands.add("status", status, "what is stopped, or how one switch stands", _status)
    commands.add("engage", engage, "stop what a switch guards", _engage, PROOF)
    releasing.register(commands)
    commands.add("extend", extend, "keep it engaged for longer, counted from now", _extend)
    commands.add("acknowledge", acknowledge, "say that somebody knows: no calls for 24 h", _known)
    commands.add("undo", undo, "take back your own engage, within 30 seconds", _one)
    commands.add("history", history, "when it was engaged, why, by whom, and how that ended", _one)


def status(call: Call) -> int:
    if call.args.switch is not None:
        return _status_of(call, call.args.switch)
    if call.args.exit_code:
        raise exits.ended(exits.USAGE, "usage", "--exit-code needs a switch to look at.")
    stopped = views.ordered(
        [
            one
            for state in ("engaged", "ramping")
            for one in showing.whole(call, "/switches/", {"state": state})
        ]
    )
    level = call.console.get("/degradation")
    if call.show({"switches": stopped, "degradation": level}):
        return exits.DONE
    screen, clock = call.screen, call.clock
    told = views.summary(stopped) if stopped else cell(Part("✔ Nothing is stopped.", "good"))
    screen.line(Part(call.console.where, "strong"), "  ", told)
    if stopped:
        screen.gap()
        screen.table(views.COLUMNS, [views.row(one, clock) for one in stopped])
        screen.gap()
    screen.line(views.degradation(level))
    return exits.DONE


def engage(call: Call) -> int:
    """The expiry is what was said, or a day."""
    args = call.args
    if args.wait_seconds is not None and not args.wait:
        raise exits.ended(exits.USAGE, "usage", "--wait-seconds needs --wait.")
    body = {
        "reason": args.reason,
        "expires_in": None if args.until else args.duration or FOR,
        "expires_at": _until(args.until, call),
        "on_expiry": args.on_expiry,
        "break_glass": broken(args),
        "dry_run": args.dry_run or None,
    }
    answer = call.console.send("POST", f"{switch_path(args.switch)}/engage", body)
    hint = f"To take it back within 30 s: switchgear undo {args.switch}"
    return _acted(call, answer.document, hint)


def extend(call: Call) -> int:
    args = call.args
    body = {"expires_in": args.duration, "reason": args.reason, "dry_run": args.dry_run or None}
    return _acted(
        call, call.console.send("POST", f"{switch_path(args.switch)}/extend", body).document
    )


def acknowledge(call: Call) -> int:
    path = f"{switch_path(call.args.switch)}/acknowledge"
    one = call.console.send("POST", path, {"comment": call.args.comment}).document
    if not call.screen.as_json:
        call.screen.line(Part("✔ Acknowledged: nobody is called for it for 24 h.", "good"))
    return _acted(call, one)


def undo(call: Call) -> int:
    return _acted(
        call, call.console.send("POST", f"{switch_path(call.args.switch)}/undo", {}).document
    )


def history(call: Call) -> int:
    """The latest first."""
    name = call.args.switch
    page = call.console.pages(f"{switch_path(name)}/history", most=MAX_EPISODES)
    if page["more"]:
        showing.cut(call, MAX_EPISODES, "episodes: these are the latest")
    empty = f"{name} was never engaged."
    return showing.table(call, page["results"], views.HISTORY_COLUMNS, views.history_row, empty)


def _status_of(call: Call, name: str) -> int:
    one = call.console.get(f"{switch_path(name)}/")
    above = None if name == GLOBAL_ID else call.console.get(f"{switch_path(GLOBAL_ID)}/")
    blocked = above is not None and above["state"] != "released"
    if not call.show(one):
        showing.switch(call, one)
        if above is not None and blocked:
            call.screen.line(
                Part("Above it: ", "strong"),
                Part(GLOBAL_ID, "name"),
                "  ",
                flat(views.state(above)),
            )
    stopped = blocked or one["state"] != "released"
    return exits.STOPPED if stopped and call.args.exit_code else exits.DONE


def _acted(call: Call, one: Document, hint: str = "") -> int:
    """Show what became of it; wait for the proof if that was asked for. That there is none is
    said before that it waits for somebody."""
    proven, seconds = True, getattr(call.args, "wait_seconds", None) or WAIT_SECONDS
    if getattr(call.args, "wait", False) and not one.get("dry_run"):
        said = "It is done, but there is no proof of effect:"
        with call.unless_lost(lambda: _tell(call, one, hint), said):
            now, proven = _prove(call, one, seconds)
        one = now
    _tell(call, one, hint)
    if not proven:
        raise exits.ended(exits.FAILED, "not-proven", _unproven(one, seconds))
    return exits.WAITS if one.get("approval") else exits.DONE


def _tell(call: Call, one: Document, hint: str) -> None:
    if call.show(one):
        return
    more: showing.Facts = ()
    dry = bool(one.get("dry_run"))
    if dry:
        call.screen.line(showing.DRY_RUN)
        if one["state"] != "released":
            more = views.blast(call.console.get(f"{switch_path(one['id'])}/preview"), call.clock)
    showing.switch(call, one, more)
    if one.get("notice"):
        call.screen.line(Part(f"⚠ {one['notice']}", "warn"))
    if one.get("approval"):
        showing.waits(call, one["approval"])
    if one.get("review"):
        showing.review(call, one["review"])
    if hint and not dry:
        call.screen.line(Part(hint, "quiet"))


def _prove(call: Call, one: Document, seconds: float) -> tuple[Document, bool]:
    """Until every instance says that it applies it; the switch as it stands then, and whether
    they do."""
    wanted, until = one["version"], time.monotonic() + seconds
    more: Document = {name: one[name] for name in _BESIDE if name in one}
    with call.screen.progress() as progress:
        for now in call.following(f"{switch_path(one['id'])}/", call.intervals.prove, until):
            found = now["effect"] or {"version": 0, "applied": 0, "instances": 0}
            of = f"{found['applied']} of {found['instances']} instances apply it"
            progress.tell(one["id"], found["applied"], found["instances"], of)
            reached = found["version"] >= wanted and 0 < found["instances"] <= found["applied"]
            if reached or time.monotonic() > until:
                return {**now, **more}, reached
    raise AssertionError


def _unproven(one: Document, seconds: int) -> str:
    found = one.get("effect") or {"applied": 0, "instances": 0}
    if not found["instances"]:
        return f"It is done, but no instance was heard from: no proof of effect in {seconds} s."
    return (
        f"It is done, but after {seconds} s only {found['applied']} of {found['instances']} "
        f"instances say that they apply it; not {views.stragglers(found)}."
    )


def _until(text: str | None, call: Call) -> str | None:
    """As the API takes it."""
    if text is None or text == "permanent":
        return text
    return f"{moment_of(text, call.console.now):%Y-%m-%dT%H:%M:%SZ}"


def _one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("switch", type=switch, metavar="SWITCH")


def _status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("switch", type=switch, metavar="SWITCH", nargs="?")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help=f"end with {exits.STOPPED} if it (or global) is engaged or ramping",
    )


def _engage(parser: argparse.ArgumentParser) -> None:
    _one(parser)
    reason(parser, WHY)
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--for",
        dest="duration",
        metavar="DURATION",
        type=of_type(duration),
        help=f"90s, 30m, 24h, 7d, … up to 30d, or permanent (needs approval); {FOR} if not said",
    )
    when.add_argument(
        "--until",
        metavar="TIME",
        type=of_type(_checked_moment),
        help="18:00 or 2026-11-23T09:00 here, or RFC 3339",
    )
    parser.add_argument("--on-expiry", choices=ON_EXPIRY, help="what happens then")
    break_glass(parser, "override this safety rule now; again for another. It has to be reviewed")
    dry_run(parser)
    parser.add_argument(
        "--wait", action="store_true", help="until every instance says that it applies it"
    )
    parser.add_argument(
        "--wait-seconds", type=of_type(whole), metavar="N", help=f"at most so long; {WAIT_SECONDS}"
    )


def _extend(parser: argparse.ArgumentParser) -> None:
    _one(parser)
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="DURATION",
        type=of_type(duration),
        required=True,
        help="from now, later than it expires already; 30m, 24h, … or permanent (needs approval)",
    )
    reason(parser, "why it has to stay")
    dry_run(parser)


def _known(parser: argparse.ArgumentParser) -> None:
    _one(parser)
    parser.add_argument("--comment", metavar="TEXT", help="who is at it, and how")


def _checked_moment(text: str) -> str:
    if text != "permanent":
        moment_of(text, Clock.here().now)
    return text
