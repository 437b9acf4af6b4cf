"""`python -m switchgear` is the command `switchgear`."""

import sys

from switchgear.cli import main

if __name__ == "__main__":
    sys.exit(main())
