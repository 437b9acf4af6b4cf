"""Breakers: how they stand, forcing them, and what they went through."""

import argparse
import re

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.commands import showing
from switchgear.cli.console import Document, place
from switchgear.cli.parser import Commands, dry_run, duration, of_type, reason
from switchgear.cli.views import breakers as views
from switchgear.cli.words import Part, many

MODES = ("forced_open", "forced_closed", "disabled", "metrics_only")
STATES = ("closed", "open", "half_open", "unknown")
WHY = "what you saw and where (at least 10 letters, and not vague)"
MAX_SHOWN = 50


def register(commands: Commands) -> None:
    breakers = commands.group(
        "breakers",
        "circuit breakers: list, show, override, reset, clear, history",
        ("list", listed, "every breaker, the worst first", _list),
    )
    breakers.add("show", show, "one breaker and its policy", _which)
    breakers.add("override", override, "force a mode upon every instance's breaker", _override)
    breakers.add("reset", reset, "let every instance's breaker begin anew, closed", _reason)
    breakers.add("clear", clear, "end an override", _reason)
    breakers.add("history", history, "its transitions, and its last minutes", _history)


def listed(call: Call) -> int:
    args = call.args
    query = {"state": args.state, "caller": args.caller, "callee": args.callee, "q": args.q}
    found = views.ordered(showing.whole(call, "/breakers/", query))
    if call.show(found):
        return exits.DONE
    if not found:
        call.screen.line("There is no such breaker." if any(query.values()) else "None is known.")
        return exits.DONE
    clock = call.clock
    shown = [one for one in found if args.all or args.state or not views.is_silent(one)]
    if shown:
        call.screen.table(views.COLUMNS, [views.row(one, clock) for one in shown])
    if hidden := len(found) - len(shown):
        call.screen.line(
            Part(f"{many(hidden, 'breaker')} nobody reports: --all shows them too", "quiet")
        )
    return exits.DONE


def show(call: Call) -> int:
    caller, callee = call.args.dependency
    dependency = call.console.get(f"/dependencies{place(caller, callee)}/")
    rows = call.console.get("/breakers/", {"caller": caller, "callee": callee})["results"]
    breaker = rows[0] if rows else None
    if call.show({"breaker": breaker, "dependency": dependency}):
        return exits.DONE
    state = views.state(breaker["state"] if breaker else "unknown")
    call.screen.line(Part(dependency["name"], "name"), "  ", state)
    told = views.facts(breaker, call.clock) if breaker else []
    call.screen.facts([*told, *views.policy(dependency)])
    return exits.DONE


def override(call: Call) -> int:
    return _put(call, call.args.mode, call.args.duration)


def reset(call: Call) -> int:
    return _put(call, "reset", None)


def clear(call: Call) -> int:
    body = {"reason": call.args.reason, "dry_run": call.args.dry_run or None}
    return _overridden(call, call.console.send("DELETE", _override_of(call), body).document)


def history(call: Call) -> int:
    caller, callee = call.args.dependency
    query = {"minutes": call.args.minutes, "limit": MAX_SHOWN}
    found = call.console.get(f"/breakers{place(caller, callee)}/history", query)
    if call.show(found):
        return exits.DONE
    if found["minutes"]:
        first = call.clock.at(found["minutes"][0]["minute"])
        call.screen.line(Part(f"from {first}  ", "quiet"), views.minutes(found["minutes"]))
        call.screen.line(Part("a minute each: . closed  + half-open  # open", "quiet"))
        call.screen.gap()
    if not found["results"]:
        call.screen.line(f"{caller}->{callee} never changed its state.")
        return exits.DONE
    rows = [views.history_row(one, call.clock) for one in found["results"]]
    call.screen.table(views.HISTORY_COLUMNS, rows)
    return exits.DONE


def _put(call: Call, mode: str, duration: str | None) -> int:
    body = {
        "mode": mode,
        "reason": call.args.reason,
        "expires_in": duration,
        "dry_run": call.args.dry_run or None,
    }
    return _overridden(call, call.console.send("PUT", _override_of(call), body).document)


def _overridden(call: Call, one: Document) -> int:
    if call.show(one):
        return exits.DONE
    if one.get("dry_run"):
        call.screen.line(showing.DRY_RUN)
    mode = one["mode"].upper().replace("_", " ")
    said = f"{mode}, ended" if one["ended_at"] else mode
    call.screen.line(Part(one["name"], "name"), "  ", Part(said, "warn"))
    call.screen.facts(views.forced(one, call.clock))
    return exits.DONE


def _override_of(call: Call) -> str:
    return f"/dependencies{place(*call.args.dependency)}/override"


def _dependency(text: str) -> tuple[str, str]:
    """Caller and callee of `core->oracle`, or `core/oracle`."""
    if text.endswith("-") and text.count("-") == 1:
        raise ValueError("a shell takes > for a file; write 'core->oracle' or core/oracle")
    found = re.fullmatch(r"([a-z0-9-]{1,60}?)(?:->|/)([a-z0-9-]{1,60})", text)
    if found is None:
        raise ValueError("write 'core->oracle' (in quotes) or core/oracle")
    return found[1], found[2]


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also those that nobody reports")
    parser.add_argument("--state", choices=STATES)
    parser.add_argument("--caller", metavar="SERVICE")
    parser.add_argument("--callee", metavar="SERVICE")
    parser.add_argument("--q", metavar="TEXT", help="in caller, callee or owner")


def _which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dependency", type=of_type(_dependency), metavar="CALLER/CALLEE")


def _reason(parser: argparse.ArgumentParser) -> None:
    _which(parser)
    reason(parser, WHY)
    dry_run(parser)


def _override(parser: argparse.ArgumentParser) -> None:
    _which(parser)
    parser.add_argument("mode", choices=MODES, metavar="MODE", help=", ".join(MODES))
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="DURATION",
        type=of_type(duration),
        required=True,
        help="90s, 30m, … up to 30d",
    )
    reason(parser, WHY)
    dry_run(parser)


def _history(parser: argparse.ArgumentParser) -> None:
    _which(parser)
    parser.add_argument(
        "--minutes", type=int, default=60, metavar="N", help="how many of the last ones; 60"
    )
