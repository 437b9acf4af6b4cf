"""The command with short pauses: `python -m tests.cli.quick_cli watch`."""

import sys

from switchgear.cli import main
from switchgear.cli.command_context import Intervals

INTERVALS = Intervals(retry=0.02, follow=0.02, prove=0.1, poll=0.1, reconnect=0.05)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], INTERVALS))
