"""`switchgear`: the console from a shell, over its public HTTP API."""

import os
import sys
from collections.abc import Sequence

from switchgear.cli import exits, problems
from switchgear.cli.call import Call
from switchgear.cli.parser import parser
from switchgear.cli.screen import standard

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Usage errors end in :class:`SystemExit`."""
    args = parser().parse_args(arguments)
    screen = standard(as_json=args.json, colour=not args.no_color)
    call = Call(args, screen)
    try:
        screen.check()
        code: int = args.run(call)
        sys.stdout.flush()
    except exits.Ended as end:
        screen.fail(end.problem, problems.sentences(end.problem, end.code))
        return end.code
    except KeyboardInterrupt:
        if not (args.json or getattr(args, "by_hand", False)):
            screen.note("Interrupted. What was asked for before goes on.")
        return exits.INTERRUPTED
    except BrokenPipeError:
        # Whoever reads has enough; Python would flush once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.FAILED
    finally:
        call.close()
    return code
