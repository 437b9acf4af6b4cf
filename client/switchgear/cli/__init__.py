"""`switchgear`: the console from a shell, over its public HTTP API."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from switchgear.cli import exits

if TYPE_CHECKING:
    from switchgear.cli.call import Call
    from switchgear.cli.intervals import Intervals

__all__ = ["main"]

INTERRUPTED = "Interrupted. What was asked for before goes on."


def main(arguments: Sequence[str] | None = None, intervals: "Intervals | None" = None) -> int:
    """Run one command; returns its exit code. `--help` and `--version` end in
    :class:`SystemExit`."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments, intervals)
    except KeyboardInterrupt:
        return exits.INTERRUPTED  # Before anything was asked for, or while it was let go.


def _run(arguments: Sequence[str], intervals: "Intervals | None") -> int:
    """What is not needed before Ctrl-C is listened to is imported here."""
    from switchgear.cli.call import Call
    from switchgear.cli.intervals import Intervals
    from switchgear.cli.parser import Misused, parser
    from switchgear.cli.screen import standard

    try:
        args = parser().parse_args(arguments)
    except Misused as wrong:
        screen = standard(as_json="--json" in arguments, colour=False)
        screen.misused(wrong.usage, exits.ended(exits.USAGE, "usage", str(wrong)).problem)
        return exits.USAGE
    screen = standard(as_json=args.json, colour=not args.no_color)
    call = Call(args, screen, intervals or Intervals())
    try:
        return _acted(call)
    except KeyboardInterrupt:
        if not (args.json or getattr(args, "by_hand", False)):
            screen.note(INTERRUPTED)
        return exits.INTERRUPTED
    finally:
        call.close()


def _acted(call: "Call") -> int:
    """The command itself, and whatever ends it."""
    from switchgear.cli import problems

    try:
        try:
            call.screen.check()
            code: int = call.args.run(call)
            return code
        except (exits.Ended, *exits.STRANGE) as error:
            end = error if isinstance(error, exits.Ended) else call.misread(error)
            call.screen.fail(end.problem, problems.sentences(end.problem, end.code))
            return end.code
    except BrokenPipeError:
        return exits.DONE  # Whoever reads has enough.
    except OSError as error:
        done = " What was asked for is done." if call.has_changed else ""
        said = f"The answer can't be written: {error.strerror or error}.{done}"
        end = exits.ended(exits.FAILED, "not-written", said)
        call.screen.fail(end.problem, [said])
        return end.code
