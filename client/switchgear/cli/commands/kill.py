"""The command `kill`: engage a switch through the console, or without it through data planes."""

import getpass
import os
import uuid
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from switchgear.cli import exits
from switchgear.cli.api_client import Document, switch_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands.switches import DEFAULT_DURATION, print_result
from switchgear.cli.formatters import StyledText, pluralize
from switchgear.cli.parser import (
    Commands,
    break_glass_options,
    duration_option,
    option,
    parse_switch,
    read_break_glass,
    reason_option,
)
from switchgear.cli.plane_client import (
    PlaneAnswer,
    basic_authorization,
    parse_urls,
    send_to_all,
)
from switchgear.environment import PLANES
from switchgear.settings import token_problem

CONSOLE_SECONDS = 2.5
"""Timeout of a request to the console, which is repeated once."""
MAX_CODE_LENGTH = 200
RETRIED_STATUSES = (408, 429)
"""Refusals of the console after which data planes are tried."""


def register(commands: Commands) -> None:
    commands.add(
        "kill",
        run_kill,
        "engage a switch, through data planes if the console is down",
        option("switch", type=parse_switch, metavar="SWITCH", nargs="?"),
        reason_option("what is wrong, and where or why (at least 10 characters, not vague)"),
        duration_option(f"how long: 90s, 30m, 24h, 7d, … (default: {DEFAULT_DURATION})"),
        option(
            "--code",
            action="store_true",
            help="use your emergency code on data planes, not the token; you are asked for it",
        ),
        option("--name", help="your user name, for --code (default: $USER)"),
        option(
            "--withdraw",
            metavar="ID",
            parse=_parse_id,
            help="withdraw this emergency order on the data planes",
        ),
        break_glass_options("override this safety rule on the console; repeatable"),
        details=(
            "The console is tried first; what it refuses is not sent elsewhere. If it can't be"
            f" reached, the order is sent to all data planes in {PLANES}, by default to the URL of"
            " the console. They need a token with the scope switches:emergency, or --code."
        ),
    )


def run_kill(call: CommandContext) -> int | None:
    args = call.args
    if (args.switch is None) == (args.withdraw is None):
        raise exits.make_usage_exit("Give a SWITCH to engage, or --withdraw ID.")
    if args.withdraw is not None:
        if args.duration or args.break_glass:
            raise exits.make_usage_exit("--withdraw takes no --for and no --break-glass.")
        _withdraw_order(call, _find_planes(call))
        return None
    break_glass = read_break_glass(args)
    planes = _find_planes(call)
    engaged, problem = _try_console(call, break_glass)
    if engaged is None:
        _engage_on_planes(call, planes, problem)
        return None
    return exits.NEEDS_APPROVAL if engaged.get("approval") else exits.DONE


def _try_console(
    call: CommandContext, break_glass: Mapping[str, Any] | None
) -> tuple[Document | None, str]:
    """Engage the switch on the console, and return its answer.

    Return None and the reason if the console can't be used. Raise :class:`exits.CommandExit` for a
    refusal.
    """
    args = call.args
    url = args.url or os.environ.get("SWITCHGEAR_URL")
    if not url:
        return None, "no console URL is set"
    if args.code and args.token_file is None and not os.environ.get("SWITCHGEAR_TOKEN"):
        return None, "the console needs a token, and none is set"
    body = {
        "reason": args.reason,
        "expires_in": args.duration or DEFAULT_DURATION,
        "break_glass": break_glass,
    }
    path = f"{switch_path(args.switch)}/engage"
    try:
        engaged = call.console.send("POST", path, body, seconds=CONSOLE_SECONDS)
    except exits.CommandExit as end:
        if not _is_unavailable(end):
            raise
        return None, str(end)
    if not call.print_json({"path": "console", "switch": engaged}):
        call.screen.line(StyledText("✔ Engaged through the console.", "good"))
        print_result(call, engaged, f"To undo within 30 s: switchgear undo {args.switch}")
    return engaged, ""


def _is_unavailable(end: exits.CommandExit) -> bool:
    """Return True if the console did not decide: it is away, fails, or something else answered."""
    status = end.problem.get("status")
    is_failure = isinstance(status, int) and (status >= 500 or status in RETRIED_STATUSES)
    return end.code == exits.UNREACHABLE or is_failure


def _engage_on_planes(call: CommandContext, planes: Sequence[str], problem: str) -> None:
    args = call.args
    if not call.screen.as_json:
        call.screen.note(f"The console was not used: {problem.rstrip('.')}.")
        call.screen.note(f"Sending an emergency order to {pluralize(len(planes), 'data plane')}.")
    order_id = str(uuid.uuid4())
    body = {
        "id": order_id,
        "action": "engage",
        "switch": args.switch,
        "reason": args.reason,
        "expires_in": args.duration or DEFAULT_DURATION,
    }
    answers = send_to_all(planes, _authorize(call), body)
    failed = _require_acceptance(answers)
    if _print_json(call, answers, console=problem):
        return
    title = StyledText(f"✔ {args.switch} is engaged on data planes.", "good")
    call.screen.line(title, f" {_describe_holders(answers)}")
    call.screen.facts([("order", order_id), ("reason", args.reason)])
    _print_failures(call, failed)
    call.screen.line(
        "Services apply it with their next snapshot. The console takes it over when it is back;"
        " release the switch there then."
    )
    hint = f"To withdraw it before that: switchgear kill --withdraw {order_id} --reason …"
    call.screen.line(StyledText(hint, "quiet"))


def _withdraw_order(call: CommandContext, planes: Sequence[str]) -> None:
    body = {
        "id": str(uuid.uuid4()),
        "action": "withdraw",
        "order": call.args.withdraw,
        "reason": call.args.reason,
    }
    answers = send_to_all(planes, _authorize(call), body)
    failed = _require_acceptance(answers)
    if _print_json(call, answers):
        return
    title = StyledText("✔ The emergency order is withdrawn on data planes.", "good")
    call.screen.line(title, f" {_describe_holders(answers)}")
    _print_failures(call, failed)
    call.screen.line(
        "If the console has taken the order over in the meantime, the switch stays engaged: release"
        " it there."
    )


def _find_planes(call: CommandContext) -> tuple[str, ...]:
    """Return the URLs of the data planes: those in the environment, or the console's URL."""
    url = call.args.url or os.environ.get("SWITCHGEAR_URL") or ""
    planes = parse_urls(os.environ.get(PLANES, "")) or parse_urls(url)
    if not planes:
        detail = f"No data plane is known. Set {PLANES} to their URLs, or SWITCHGEAR_URL."
        raise exits.make_exit(exits.USAGE, "no-url", detail)
    return planes


def _authorize(call: CommandContext) -> str:
    """Return the header `Authorization` for data planes; with `--code`, prompt for the code."""
    args = call.args
    if not args.code:
        token = call.read_token()
        if token_problem(token) is not None:
            detail = "The token is invalid. Set SWITCHGEAR_TOKEN to a token: sg_<prefix>_<secret>."
            raise exits.make_exit(exits.NO_RIGHTS, "settings", detail)
        return f"Bearer {token}"
    name = args.name or os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    if not name or ":" in name:
        raise exits.make_usage_exit("Give your user name by --name; it contains no colon.")
    return basic_authorization(name, _prompt_code(name))


def _prompt_code(name: str) -> str:
    """Return the emergency code typed on the terminal, without echo."""
    try:
        with warnings.catch_warnings():
            # Without a terminal, getpass would show the code.
            warnings.simplefilter("error", getpass.GetPassWarning)
            code = getpass.getpass(f"Emergency code of {name}: ").strip()
    except (EOFError, OSError, getpass.GetPassWarning):
        raise exits.make_usage_exit("--code needs a terminal to type the code.") from None
    if not 0 < len(code) <= MAX_CODE_LENGTH:
        raise exits.make_usage_exit("No emergency code was typed, so nothing was sent.")
    return code


def _require_acceptance(answers: Sequence[PlaneAnswer]) -> list[PlaneAnswer]:
    """Return the answers of data planes that did not accept the order.

    Raise :class:`exits.CommandExit` if none accepted it.
    """
    failed = [answer for answer in answers if answer.acceptance is None]
    if len(failed) < len(answers):
        return failed
    failed.sort(key=_priority)
    status = failed[0].status
    code = exits.UNREACHABLE if status is None else exits.code_for_status(status)
    is_decided = all(answer.status is not None for answer in failed)
    title = "accepted the order, so nothing changed there" if is_decided else "confirmed the order"
    problems = [_failure(answer) for answer in failed]
    raise exits.make_exit(code, "not-accepted", f"No data plane has {title}.", failed=problems)


def _priority(answer: PlaneAnswer) -> int:
    """Return a sort key: refusals first; a data plane that has not heard of an order says 404."""
    if answer.status is None or answer.status >= 500:
        return 2
    return 1 if answer.status == 404 else 0


def _describe_holders(answers: Sequence[PlaneAnswer]) -> str:
    names, total = _holders(answers)
    known = ", ".join(names)
    return f"{len(names)} of {pluralize(total, 'data plane')} confirmed it: {known}."


def _holders(answers: Sequence[PlaneAnswer]) -> tuple[list[str], int]:
    """Return the names of the data planes that hold the order, and the number of data planes."""
    names: set[str] = set()
    total = 0
    for answer in answers:
        if answer.acceptance is not None:
            names.update(map(str, answer.acceptance["accepted_by"]))
            total = max(total, int(answer.acceptance["planes"]))
    return sorted(names), max(total, len(names))


def _print_json(call: CommandContext, answers: Sequence[PlaneAnswer], **more: object) -> bool:
    names, total = _holders(answers)
    [accepted, *_] = [answer.acceptance for answer in answers if answer.acceptance is not None]
    return call.print_json(
        {
            "path": "planes",
            **more,
            **accepted,
            "accepted_by": names,
            "planes": total,
            "failed": [_failure(answer) for answer in answers if answer.acceptance is None],
        }
    )


def _print_failures(call: CommandContext, failed: Sequence[PlaneAnswer]) -> None:
    for answer in failed:
        text = f"⚠ Not confirmed by {answer.url}: {answer.detail.rstrip('.')}."
        call.screen.line(StyledText(text, "warn"))


def _failure(answer: PlaneAnswer) -> dict[str, object]:
    return {"url": answer.url, "status": answer.status, "detail": answer.detail}


def _parse_id(text: str) -> str:
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        raise ValueError("use the id of an emergency order, a UUID") from None
