"""The command `switchgear`, a client of the console's HTTP API for shells."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from switchgear.cli import exits

if TYPE_CHECKING:
    from switchgear.cli.command_context import CommandContext, Intervals

__all__ = ["main"]

INTERRUPTED = "Interrupted. Changes already requested continue on the console."


def main(arguments: Sequence[str] | None = None, intervals: "Intervals | None" = None) -> int:
    """Run one command and return its exit code."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments, intervals)
    except KeyboardInterrupt:
        return exits.INTERRUPTED  # Ctrl-C during the imports, or at the very end.


def _run(arguments: Sequence[str], intervals: "Intervals | None") -> int:
    """Import the modules and run the command; the caller handles Ctrl-C during the imports, too."""
    from switchgear.cli.command_context import CommandContext, Intervals
    from switchgear.cli.parser import UsageError, build_parser
    from switchgear.cli.screen import make_screen

    try:
        args = build_parser().parse_args(arguments)
    except UsageError as wrong:
        screen = make_screen(as_json="--json" in arguments, colour=False)
        screen.usage_error(wrong.usage, exits.make_usage_exit(str(wrong)).problem)
        return exits.USAGE
    screen = make_screen(as_json=args.json, colour=not args.no_color)
    call = CommandContext(args, screen, intervals or Intervals())
    try:
        return _run_command(call)
    except KeyboardInterrupt:
        if not (args.json or getattr(args, "by_hand", False)):
            screen.note(INTERRUPTED)
        return exits.INTERRUPTED
    finally:
        call.close()


def _run_command(call: "CommandContext") -> int:
    """Run the command; print the error that ends it, and return the exit code."""
    try:
        try:
            call.screen.check_tables()
            code: int | None = call.args.run(call)
            return exits.DONE if code is None else code
        except (exits.CommandExit, *exits.MISREAD_ERRORS) as error:
            end = error if isinstance(error, exits.CommandExit) else call.explain_misread(error)
            call.screen.fail(end.problem, exits.describe_problem(end.problem, end.code))
            return end.code
    except BrokenPipeError:
        return exits.DONE  # The reader of the pipe, such as `head`, has ended.
    except OSError as error:
        done = " The change itself was made." if call.has_changed else ""
        detail = f"The output can't be written: {error.strerror or error}.{done}"
        end = exits.make_exit(exits.FAILED, "not-written", detail)
        call.screen.fail(end.problem, [detail])
        return end.code
