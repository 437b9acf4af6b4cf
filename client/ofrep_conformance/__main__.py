"""Run the suite by `python -m ofrep_conformance`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
