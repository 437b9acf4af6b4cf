"""Entry point of `python -m switchgear`, the same program as the command `switchgear`."""

import sys

if __name__ == "__main__":
    try:
        from switchgear.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
