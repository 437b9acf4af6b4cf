"""Commands for circuit breakers: `breakers list|show|override|reset|clear|history`."""

import re

from switchgear.cli import output
from switchgear.cli.api_client import Query, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import StyledText, pluralize
from switchgear.cli.parser import DRY_RUN, Commands, duration_option, option, reason_option
from switchgear.cli.views import breakers as views

MODES = ("forced_open", "forced_closed", "disabled", "metrics_only")
STATES = ("closed", "open", "half_open", "unknown")
MAX_SHOWN = 50


def register(commands: Commands) -> None:
    breakers = commands.add_group(
        "breakers",
        "circuit breakers: list, show, override, reset, clear, history",
        list_breakers,
        "list breakers, open ones first",
        option("--all", action="store_true", help="include breakers that no instance reports"),
        option("--state", choices=STATES),
        option("--caller", metavar="SERVICE"),
        option("--callee", metavar="SERVICE"),
        option("--q", metavar="TEXT", help="text in caller, callee or owner"),
    )
    dependency = option("dependency", parse=_parse_dependency, metavar="CALLER/CALLEE")
    why = reason_option("what you saw and where (at least 10 characters, not vague)")
    breakers.add("show", show_breaker, "show a breaker and its policy", dependency)
    breakers.add(
        "override",
        put_override,
        "force a mode on all instances",
        dependency,
        option("mode", choices=MODES, metavar="MODE", help=", ".join(MODES)),
        duration_option("how long: 90s, 30m, … up to 30d", required=True),
        why,
        DRY_RUN,
    )
    breakers.add(
        "reset",
        put_override,
        "close the breaker and clear its counts on all instances",
        lambda parser: parser.set_defaults(mode="reset", duration=None),
        dependency,
        why,
        DRY_RUN,
    )
    breakers.add("clear", clear_override, "remove an override", dependency, why, DRY_RUN)
    breakers.add(
        "history",
        show_history,
        "show state changes, and the state in each recent minute",
        dependency,
        option(
            "--minutes",
            type=int,
            default=60,
            metavar="N",
            help="number of recent minutes (default: 60)",
        ),
    )


def list_breakers(call: CommandContext) -> None:
    args = call.args
    query = {"state": args.state, "caller": args.caller, "callee": args.callee, "q": args.q}
    found = output.sort_by_state(output.get_items(call, "/breakers/", query), views.ORDER)
    if call.print_json(found):
        return
    shown = [one for one in found if args.all or args.state or not views.is_silent(one)]
    if shown or not found:
        empty = "No breakers match." if any(query.values()) else "No breakers yet."
        output.print_table(call, shown, views.COLUMNS, views.breaker_row, empty)
    if hidden := len(found) - len(shown):
        text = f"{pluralize(hidden, 'breaker')} not reported by any instance (--all shows them)"
        call.screen.line(StyledText(text, "quiet"))


def show_breaker(call: CommandContext) -> None:
    caller, callee = call.args.dependency
    dependency = call.console.get(f"/dependencies{url_path(caller, callee)}/")
    rows = call.console.get("/breakers/", {"caller": caller, "callee": callee})["results"]
    breaker = rows[0] if rows else None
    if call.print_json({"breaker": breaker, "dependency": dependency}):
        return
    state = views.format_state(breaker["state"] if breaker else "unknown")
    call.screen.line(StyledText(dependency["name"], "name"), "  ", state)
    facts = views.breaker_facts(breaker, call.clock) if breaker else []
    call.screen.facts([*facts, *views.policy_facts(dependency)])


def put_override(call: CommandContext) -> None:
    args = call.args
    body = {"mode": args.mode, "reason": args.reason, "expires_in": args.duration}
    _send_override(call, "PUT", body)


def clear_override(call: CommandContext) -> None:
    _send_override(call, "DELETE", {"reason": call.args.reason})


def show_history(call: CommandContext) -> None:
    caller, callee = call.args.dependency
    query = {"minutes": call.args.minutes, "limit": MAX_SHOWN}
    found = call.console.get(f"/breakers{url_path(caller, callee)}/history", query)
    if call.print_json(found):
        return
    if found["minutes"]:
        first = call.clock.short_time(found["minutes"][0]["minute"])
        minutes = views.format_minutes(found["minutes"])
        call.screen.line(StyledText(f"from {first}  ", "quiet"), minutes)
        call.screen.line(
            StyledText("one character per minute: . closed  + half-open  # open", "quiet")
        )
        call.screen.blank_line()
    empty = f"{caller}->{callee} has no recorded state changes."
    output.print_table(call, found["results"], views.HISTORY_COLUMNS, views.history_row, empty)


def _send_override(call: CommandContext, method: str, body: Query) -> None:
    one = call.send(method, f"/dependencies{url_path(*call.args.dependency)}/override", body)
    if call.print_json(one):
        return
    if one.get("dry_run"):
        call.screen.line(output.DRY_RUN)
    mode = one["mode"].upper().replace("_", " ")
    status = f"{mode}, ended" if one["ended_at"] else mode
    call.screen.line(StyledText(one["name"], "name"), "  ", StyledText(status, "warn"))
    call.screen.facts(views.override_facts(one, call.clock))


def _parse_dependency(text: str) -> tuple[str, str]:
    """Return caller and callee of `core->oracle` or `core/oracle`."""
    if text.endswith("-") and text.count("-") == 1:
        raise ValueError(
            "the shell treats > as a redirect; use 'core->oracle' in quotes, or core/oracle"
        )
    found = re.fullmatch(r"([a-z0-9-]{1,60}?)(?:->|/)([a-z0-9-]{1,60})", text)
    if found is None:
        raise ValueError("use 'core->oracle' (in quotes) or core/oracle")
    return found[1], found[2]
