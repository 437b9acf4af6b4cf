"""Celery's command without its interactive shell, whose libraries take 7 MB per process."""

import sys
from types import ModuleType

_shell = ModuleType("click_repl")
_shell.register_repl = lambda _group: None  # type: ignore[attr-defined]
sys.modules["click_repl"] = _shell

from celery.__main__ import main  # noqa: E402 - it imports the shell

if __name__ == "__main__":
    main()
