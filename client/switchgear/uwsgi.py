"""A warning about uWSGI options that keep a client's threads from running in its workers."""

import logging
import sys
from collections.abc import Mapping
from typing import Any

THREADS_BY_DEFAULT = (2, 0, 31)
"""uWSGI versions from this one on are known to enable threads by default."""
FORK_HOOKS = ("lazy-apps", "lazy", "py-call-osafterfork", "py-call-uwsgi-fork-hooks")
"""Options with which a client starts in the worker, or is notified of the fork."""

log = logging.getLogger("switchgear")


def warn_without_threads() -> None:
    """Log one warning that names the options to set; do nothing outside of uWSGI."""
    module = sys.modules.get("uwsgi")
    if module is None:
        return
    found = getattr(module, "opt", None)
    options = found if isinstance(found, Mapping) else {}
    missing = []
    if not _has_threads(options, _version_numbers(getattr(module, "version", b""))):
        missing.append("enable-threads = true")
    counts = [_option_number(options.get(name)) for name in ("processes", "workers", "cheaper")]
    forks_workers = _is_on(options.get("master")) or max(counts) > 1
    if forks_workers and not any(_is_on(options.get(each)) for each in FORK_HOOKS):
        missing.append("lazy-apps = true (or py-call-osafterfork = true)")
    if missing:
        log.warning(
            "switchgear: uWSGI's workers will not receive changes: set %s", " and ".join(missing)
        )


def _has_threads(options: Mapping[Any, Any], version: tuple[int, ...]) -> bool:
    given = options.get("enable-threads")
    if given is not None:
        return _is_on(given)
    return _option_number(options.get("threads")) > 1 or version >= THREADS_BY_DEFAULT


def _option_text(value: object) -> str:
    """Return the text of an option: True, bytes, or the last of several values."""
    if isinstance(value, list):
        value = value[-1] if value else None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _is_on(value: object) -> bool:
    off = ("false", "off", "no", "0")
    return value is not None and _option_text(value).strip().lower() not in off


def _option_number(value: object) -> int:
    text = _option_text(value).strip()
    return int(text) if text.isdecimal() else 0


def _version_numbers(value: object) -> tuple[int, ...]:
    return tuple(int(each) for each in _option_text(value).split(".") if each.isdecimal())
