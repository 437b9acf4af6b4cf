"""Commands for switches: `status|engage|extend|acknowledge|undo|history`."""

import time
from datetime import UTC, datetime

from switchgear.cli import exits, output
from switchgear.cli.api_client import Document, Query, switch_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import release
from switchgear.cli.formatters import StyledText, cell, parse_moment, single_line
from switchgear.cli.parser import (
    DRY_RUN,
    SWITCH,
    Commands,
    break_glass_options,
    duration_option,
    one_of,
    option,
    parse_count,
    parse_switch,
    read_break_glass,
    reason_option,
)
from switchgear.cli.views import switches as views
from switchgear.evaluation.scopes import GLOBAL_ID

WAIT_SECONDS = 60
DEFAULT_DURATION = "24h"
MAX_EPISODES = 50
_CARRIED_FIELDS = ("approval", "review", "notice")
ON_EXPIRY = ("hold", "ramp", "release")


def register(commands: Commands) -> None:
    commands.add(
        "status",
        show_status,
        "list engaged and ramping switches, or show one switch",
        option("switch", type=parse_switch, metavar="SWITCH", nargs="?"),
        option(
            "--exit-code",
            action="store_true",
            help=f"exit with {exits.STOPPED} if the switch or global is engaged or ramping",
        ),
    )
    commands.add(
        "engage",
        engage_switch,
        "engage a switch: block its traffic",
        SWITCH,
        reason_option("what is wrong, and where or why (at least 10 characters, not vague)"),
        one_of(
            duration_option(
                "how long: 90s, 30m, 24h, 7d, … up to 30d, or permanent, which requires approval"
                f" (default: {DEFAULT_DURATION})"
            ),
            option(
                "--until",
                metavar="TIME",
                parse=_check_moment,
                help="expiry: 18:00 or 2026-11-23T09:00 in local time, or RFC 3339",
            ),
        ),
        option("--on-expiry", choices=ON_EXPIRY, help="action at expiry"),
        break_glass_options("override this safety rule; repeatable. Someone else must review it"),
        DRY_RUN,
        option("--wait", action="store_true", help="wait until all instances have confirmed it"),
        option(
            "--wait-seconds",
            parse=parse_count,
            metavar="N",
            help=f"maximum wait (default: {WAIT_SECONDS})",
        ),
        details=(
            "With --wait, the exit code is 1 if the switch is engaged but not all instances have"
            " confirmed it in time, even if an approval is pending, too (6)."
        ),
    )
    release.register(commands)
    commands.add(
        "extend",
        extend_switch,
        "keep a switch engaged for longer, counted from now",
        SWITCH,
        duration_option(
            "duration from now, ending after the present expiry: 30m, 24h, …, or permanent, which"
            " requires approval",
            required=True,
        ),
        reason_option("why it must stay engaged"),
        DRY_RUN,
    )
    commands.add(
        "acknowledge",
        acknowledge_switch,
        "acknowledge a switch: pauses its escalation for 24 h",
        SWITCH,
        option("--comment", metavar="TEXT", help="who is working on it, and how"),
    )
    commands.add("undo", undo_engage, "undo your own engagement, within 30 seconds", SWITCH)
    commands.add(
        "history",
        list_episodes,
        "list the switch's episodes: when, why, by whom, and how they ended",
        SWITCH,
    )


def show_status(call: CommandContext) -> int | None:
    if call.args.switch is not None:
        return _print_status(call, call.args.switch)
    if call.args.exit_code:
        raise exits.make_usage_exit("--exit-code needs a switch.")
    stopped = views.sort_switches(
        [
            one
            for state in ("engaged", "ramping")
            for one in output.get_items(call, "/switches/", {"state": state})
        ]
    )
    level = call.console.get("/degradation")
    if call.print_json({"switches": stopped, "degradation": level}):
        return None
    screen, clock = call.screen, call.clock
    nothing = StyledText("✔ Nothing is engaged or ramping.", "good")
    summary = views.format_summary(stopped) if stopped else nothing
    screen.line(StyledText(call.console.title, "strong"), "  ", summary)
    if stopped:
        screen.blank_line()
        screen.table(views.COLUMNS, [views.switch_row(one, clock) for one in stopped])
        screen.blank_line()
    screen.line(views.format_degradation(level))
    return None


def engage_switch(call: CommandContext) -> int:
    args = call.args
    if args.wait_seconds is not None and not args.wait:
        raise exits.make_usage_exit("--wait-seconds needs --wait.")
    body = {
        "reason": args.reason,
        "expires_in": None if args.until else args.duration or DEFAULT_DURATION,
        "expires_at": _format_until(args.until, call),
        "on_expiry": args.on_expiry,
        "break_glass": read_break_glass(args),
    }
    hint = f"To undo within 30 s: switchgear undo {args.switch}"
    return _finish_change(call, _post(call, "engage", body), hint)


def extend_switch(call: CommandContext) -> int:
    body = {"expires_in": call.args.duration, "reason": call.args.reason}
    return _finish_change(call, _post(call, "extend", body))


def acknowledge_switch(call: CommandContext) -> int:
    one = _post(call, "acknowledge", {"comment": call.args.comment})
    if not call.screen.as_json:
        call.screen.line(StyledText("✔ Acknowledged. Escalation is paused for 24 h.", "good"))
    return _finish_change(call, one)


def undo_engage(call: CommandContext) -> int:
    return _finish_change(call, _post(call, "undo", {}))


def list_episodes(call: CommandContext) -> None:
    name = call.args.switch
    path, what = f"{switch_path(name)}/history", "episodes; showing the latest"
    found = output.get_items(call, path, None, MAX_EPISODES, what)
    empty = f"{name} was never engaged."
    output.print_table(call, found, views.HISTORY_COLUMNS, views.history_row, empty)


def _post(call: CommandContext, action: str, body: Query) -> Document:
    return call.send("POST", f"{switch_path(call.args.switch)}/{action}", body)


def _print_status(call: CommandContext, name: str) -> int:
    one = call.console.get(f"{switch_path(name)}/")
    above = None if name == GLOBAL_ID else call.console.get(f"{switch_path(GLOBAL_ID)}/")
    blocked = above is not None and above["state"] != "released"
    if not call.print_json(one):
        output.print_switch(call, one)
        if above is not None and blocked:
            title = cell(StyledText("Blocked by ", "strong"), StyledText(GLOBAL_ID, "name"))
            call.screen.line(title, "  ", single_line(views.format_state(above)))
    stopped = blocked or one["state"] != "released"
    return exits.STOPPED if stopped and call.args.exit_code else exits.DONE


def _finish_change(call: CommandContext, one: Document, hint: str = "") -> int:
    """Print the changed switch; with `--wait`, first wait until all instances apply it.

    The exit code is `FAILED` if an instance does not apply the change in time, otherwise
    `NEEDS_APPROVAL` if an approval is pending.
    """
    proven, seconds = True, getattr(call.args, "wait_seconds", None) or WAIT_SECONDS
    if getattr(call.args, "wait", False) and not one.get("dry_run"):
        text = "The change is saved, but its effect could not be confirmed:"
        with call.report_if_lost(lambda: print_result(call, one, hint), text):
            now, proven = _wait_for_effect(call, one, seconds)
        one = now
    print_result(call, one, hint)
    if not proven:
        raise exits.make_exit(exits.FAILED, "not-proven", _describe_missing_effect(one, seconds))
    return exits.NEEDS_APPROVAL if one.get("approval") else exits.DONE


def print_result(call: CommandContext, one: Document, hint: str) -> None:
    """Print the changed switch, with requests for approval or review."""
    if call.print_json(one):
        return
    more: output.Facts = ()
    dry = bool(one.get("dry_run"))
    if dry:
        call.screen.line(output.DRY_RUN)
        if one["state"] != "released":
            preview = call.console.get(f"{switch_path(one['id'])}/preview")
            more = views.blast_radius(preview, call.clock)
    output.print_switch(call, one, more)
    if one.get("notice"):
        call.screen.line(StyledText(f"⚠ {one['notice']}", "warn"))
    if one.get("approval"):
        output.print_approval(call, one["approval"])
    if one.get("review"):
        output.print_review(call, one["review"])
    if hint and not dry:
        call.screen.line(StyledText(hint, "quiet"))


def _wait_for_effect(call: CommandContext, one: Document, seconds: float) -> tuple[Document, bool]:
    """Wait until every instance applies the change; return the switch, and True if all do."""
    version, until = one["version"], time.monotonic() + seconds
    more: Document = {name: one[name] for name in _CARRIED_FIELDS if name in one}
    with call.screen.progress() as progress:
        for now in call.poll(f"{switch_path(one['id'])}/", call.intervals.prove, until):
            found = now["effect"] or {"version": 0, "applied": 0, "instances": 0}
            of = f"applied by {found['applied']} of {found['instances']} instances"
            progress.update(one["id"], found["applied"], found["instances"], of)
            reached = found["version"] >= version and 0 < found["instances"] <= found["applied"]
            if reached or time.monotonic() > until:
                return {**now, **more}, reached
    raise AssertionError


def _describe_missing_effect(one: Document, seconds: int) -> str:
    found = one.get("effect") or {"applied": 0, "instances": 0}
    if not found["instances"]:
        return (
            f"The change is saved, but after {seconds} s no instance is reporting, so its effect"
            " is unknown."
        )
    return (
        f"The change is saved, but after {seconds} s only {found['applied']} of"
        f" {found['instances']} instances have confirmed it. Not confirmed by"
        f" {views.format_stragglers(found)}."
    )


def _format_until(text: str | None, call: CommandContext) -> str | None:
    """Return the time of `--until` in the API's format."""
    if text is None or text == "permanent":
        return text
    return f"{parse_moment(text, call.console.now):%Y-%m-%dT%H:%M:%SZ}"


def _check_moment(text: str) -> str:
    if text != "permanent":
        parse_moment(text, datetime.now(UTC))
    return text
