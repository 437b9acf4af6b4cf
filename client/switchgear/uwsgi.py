"""A warning about uWSGI options that keep a client's threads from running in its workers."""

import sys
from collections.abc import Mapping

from switchgear.journal import log

THREADS_BY_DEFAULT = (2, 0, 31)
"""uWSGI versions from this one on are known to enable threads by default."""
FORK_HOOKS = ("lazy-apps", "lazy", "py-call-osafterfork", "py-call-uwsgi-fork-hooks")
"""Options with which a client starts in the worker, or is notified of the fork."""


def warn_without_threads() -> None:
    """Log a warning if uWSGI's options stop threads, which names the options to set.

    Do nothing outside of uWSGI.
    """
    module = sys.modules.get("uwsgi")
    if module is None:
        return
    found = getattr(module, "opt", None)
    options = found if isinstance(found, Mapping) else {}
    missing = []
    version = _option_text(getattr(module, "version", b"")).split(".")
    numbers = tuple(int(each) for each in version if each.isdecimal())
    enabled = options.get("enable-threads")
    has_several = _option_number(options.get("threads")) > 1 or numbers >= THREADS_BY_DEFAULT
    if not (has_several if enabled is None else _is_on(enabled)):
        missing.append("enable-threads = true")
    counts = [_option_number(options.get(name)) for name in ("processes", "workers", "cheaper")]
    forks_workers = _is_on(options.get("master")) or max(counts) > 1
    if forks_workers and not any(_is_on(options.get(each)) for each in FORK_HOOKS):
        missing.append("lazy-apps = true (or py-call-osafterfork = true)")
    if missing:
        log.warning(
            "switchgear: uWSGI workers will not receive changes: set %s", " and ".join(missing)
        )


def _option_text(value: object) -> str:
    """Return the text of a uWSGI option: True, bytes, or a list of repeated values."""
    if isinstance(value, list):
        value = value[-1] if value else None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _is_on(value: object) -> bool:
    off = ("false", "off", "no", "0")
    return value is not None and _option_text(value).strip().lower() not in off


def _option_number(value: object) -> int:
    text = _option_text(value).strip()
    return int(text) if text.isdecimal() else 0
