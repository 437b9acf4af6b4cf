"""The command `release`, which releases a switch by a ramp or at once."""

import json
import math
import re

from switchgear.cli import exits, output
from switchgear.cli.api_client import Document, switch_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import ramps
from switchgear.cli.formatters import StyledText, duration_seconds
from switchgear.cli.parser import (
    DRY_RUN,
    SWITCH,
    Commands,
    break_glass_options,
    one_of,
    option,
    read_break_glass,
    reason_option,
)

PERCENTS = (5.0, 25.0, 100.0)


def register(commands: Commands) -> None:
    commands.add(
        "release",
        release_switch,
        "release a switch, by a ramp or at once",
        SWITCH,
        reason_option("what changed, and why traffic can flow again"),
        one_of(
            option(
                "--immediate", action="store_true", help="release all traffic now, without a ramp"
            ),
            option(
                "--plan",
                parse=_parse_percents,
                metavar="5,25,100",
                help="percentage of each step, ending at 100",
            ),
        ),
        option("--dwell", parse=duration_seconds, metavar="5m", help="duration of each step"),
        option(
            "--gate",
            action="append",
            parse=_parse_gate,
            metavar="GATE",
            help=(
                "gate of each step: manual, slo:NAME, samples:NAME, breaker:A->B, external:NAME or"
                " KIND:FIELD=VALUE,...; repeatable"
            ),
        ),
        break_glass_options("override this safety rule; repeatable"),
        DRY_RUN,
        option(
            "--follow",
            action="store_true",
            help="wait for the ramp to finish and show its progress",
        ),
        details=(
            "Without a plan, the ramp has three steps of 5 minutes: 5, 25 and 100 %. Releasing the"
            " global switch, or releasing a segment or a protected switch at once, requires a"
            " second person's approval."
        ),
    )


def release_switch(call: CommandContext) -> int | None:
    args = call.args
    body = {
        "justification": args.reason,
        "mode": "immediate" if args.immediate else None,
        "plan": _make_plan(args.plan, args.dwell, args.gate),
        "break_glass": read_break_glass(args),
    }
    document = call.send("POST", f"{switch_path(args.switch)}/release", body)
    ramp = document.get("ramp")
    if isinstance(ramp, dict) and args.follow and not args.dry_run:
        ramps.follow_ramp(call, ramp["id"], lambda: _print_result(call, document))
        return None
    _print_result(call, document)
    return exits.NEEDS_APPROVAL if document.get("approval") else None


def _print_result(call: CommandContext, document: Document) -> None:
    if call.print_json(document):
        return
    ramp, approval = document.get("ramp"), document.get("approval")
    if document.get("dry_run"):
        call.screen.line(output.DRY_RUN)
    if approval:
        output.print_approval(call, approval)
        call.screen.line("Nothing changes until someone else approves it.")
    elif isinstance(ramp, dict):
        ramps.print_ramp(call, ramp)
        if ramp["id"] is not None:
            hint = f"To follow it: switchgear ramp follow {ramp['id']}"
            call.screen.line(StyledText(hint, "quiet"))
    else:
        output.print_switch(call, document)
    if document.get("review"):
        output.print_review(call, document["review"])


def _make_plan(
    percents: list[float] | None, dwell: int | None, gates: list[Document] | None
) -> list[Document] | None:
    """Return the steps of a ramp, one for each percentage, with this dwell time and these gates.

    Return None if no option is given, so that the console's default plan applies.
    """
    if percents is None and dwell is None and gates is None:
        return None
    steps: list[Document] = [{"percent": percent} for percent in percents or PERCENTS]
    for step in steps:
        if dwell is not None:
            step["dwell_seconds"] = dwell
        if gates is not None:
            step["gates"] = gates
    return steps


def _parse_percents(text: str) -> list[float]:
    try:
        percents = [float(part.strip().removesuffix("%")) for part in text.split(",")]
        if all(map(math.isfinite, percents)):
            return percents
        raise ValueError(text)
    except ValueError:
        raise ValueError("use increasing percentages that end at 100, such as 5,25,100") from None


def _parse_gate(text: str) -> Document:
    """Parse a gate of a ramp, such as `manual`, `slo:NAME` or `breaker:core->oracle`.

    Any gate can be given as `KIND:FIELD=VALUE,…`.
    """
    kind, _, name = text.partition(":")
    fields = {"slo": "slo", "samples": "slo", "breaker": "dependency", "external": "gate"}
    if kind == "manual" and not name:
        return {"type": kind}
    if kind and "=" in name and (kind not in fields or name.startswith(f"{fields[kind]}=")):
        pairs = (pair.partition("=") for pair in name.split(","))
        return {"type": kind, **{field.strip(): _parse_value(value) for field, _, value in pairs}}
    if kind not in fields or not name:
        raise ValueError(
            "use manual, slo:NAME, samples:NAME, breaker:A->B, external:NAME or KIND:FIELD=VALUE"
        )
    return {"type": kind, fields[kind]: name}


def _parse_value(text: str) -> object:
    """Return a number if the text is one, otherwise the text."""
    return json.loads(text) if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text) else text
