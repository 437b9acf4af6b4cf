"""The supervisor's command line; see `_USAGE`."""

import sys
from collections.abc import Callable, Sequence

from controlplane.core.environment_variables import WrongVariable
from controlplane.supervisor import demo, regions
from controlplane.supervisor.execute import execute
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.output import Terminal
from controlplane.supervisor.run import run

_USAGE = (
    "usage: python -m controlplane.supervisor run | demo | regions | exec -- COMMAND [ARGUMENT …]"
)


def main(arguments: Sequence[str]) -> int:
    terminal = Terminal(sys.stdout.fileno() if sys.stdout is not None else None)
    match arguments:
        case ["run"]:
            return run_reporting_errors(lambda: run(terminal))
        case ["demo"]:
            return run_reporting_errors(lambda: run(terminal, demo.build_demo_plan))
        case ["regions"]:
            return run_reporting_errors(lambda: run(terminal, regions.build_regions_plan))
        case ["exec", "--", _, *_]:
            return run_reporting_errors(lambda: execute(terminal, arguments[2:]))
    sys.stderr.write(f"{_USAGE}\n")
    return 2


def run_reporting_errors(action: Callable[[], int]) -> int:
    """Run `action` and return its exit code; if it fails, print the reason on stderr."""
    try:
        return action()
    except CannotRun as failure:
        sys.stderr.write(f"switchgear: {failure}\n")
        return failure.exit_code
    except WrongVariable as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"switchgear: {error}\n")
        return 1
    except KeyboardInterrupt:  # Before the supervisor handles signals itself.
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
