#!/usr/bin/env python
"""Administration of one Switchgear installation from the shell of its server."""

import os
import sys


def main() -> int:
    from controlplane.core.environment_variables import WrongVariable
    from controlplane.processes.relay_command import is_relay_command, run_relay_command

    try:
        if is_relay_command(sys.argv) and run_relay_command(sys.argv):
            return 0
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except WrongVariable as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # Whoever read along, such as `head`, has enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
