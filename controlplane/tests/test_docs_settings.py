"""Every environment variable read by the code is documented, and nothing else is."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "settings.md"
READ_BY = ("controlplane", "switches", "breakers", "slo", "client/switchgear", "client/demo")
_READ = re.compile(
    r"""(?:environ|environment|variables|source)(?:\.get\(|\.setdefault\(|\[)\s*f?"([A-Z][A-Z_]+)"|"""
    r"""\bread_(?:number|networks|flag|roles|origins|base_urls|pairs)\(\s*(?:variables|os\.environ),\s*"([A-Z][A-Z_]+)\"|"""
    r"""^VARIABLES = \("([A-Z][A-Z_]+)\"|"""
    r"""^[A-Z_]+ = "((?:SNAPSHOT|SWITCHGEAR)_[A-Z_]+)\"""",
    re.MULTILINE,
)
_NUMBER = re.compile(
    r"""read_number\(\s*(?:variables|os\.environ), "([A-Z_]+)", """
    r"""default=([\d_]+), low=([\d_]+), high=([\d_]+)""",
)
_NAMED = re.compile(r"^\| ((?:`[A-Z][A-Z_]+`(?:, )?)+) \|", re.MULTILINE)
_ROW = re.compile(r"^\| `([A-Z_]+)` \| (.*) \|$", re.MULTILINE)

DEFAULTS_BY_PROCESS = {"DATABASE_POOL"}

NOT_SETTINGS = {
    "ENVIRONMENT",  # What a chain of language models asks of the service that it runs in.
    "COLUMNS",
    "PYTHONPATH",
    "XDG_STATE_HOME",
    "REMOTE_ADDR",  # The peer of a WSGI request.
    "DJANGO_SETTINGS_MODULE",
    "CELERY_SKIP_CHECKS",
    "PGDATABASE",  # Of libpq, for its programs.
    "DEMO_TOKEN_FILE",  # The demo's own services are told by the supervisor.
    *("LOGNAME", "USER"),  # The person at a shell.
    "SWITCHGEAR_SUPERVISOR_PID",  # Children are told by the supervisor.
    "SWITCHGEAR_",  # Of the client: it puts the name of an argument behind it.
}
SAID_OTHERWISE = {
    "TEST_DATABASE_URL",
    "TEST_REDIS_URL",
    "SWITCHGEAR_SERVICE",
    "SWITCHGEAR_INSTANCE",
    "SWITCHGEAR_STATE_DIR",
    "SWITCHGEAR_FALLBACK_URL",
    "SWITCHGEAR_BOOTSTRAP",
    "SWITCHGEAR_PLANES",
}
"""Names composed at runtime."""


def test_a_variable_that_is_read_has_a_row() -> None:
    assert _read() - _explained() == set()


def test_a_row_is_about_a_variable_that_is_read() -> None:
    assert _explained() - _read() == SAID_OTHERWISE


def test_a_number_has_the_default_and_the_bounds_of_the_code() -> None:
    rows = dict(_ROW.findall(PAGE.read_text(encoding="utf-8")))

    read = {name: (default, bounds) for name, default, bounds in _read_numbers()}

    assert len(read) > 8
    for name, (default, bounds) in read.items():
        cells = rows[name].replace(",", "").split(" | ")
        assert bounds in cells[1], name
        assert name in DEFAULTS_BY_PROCESS or cells[0].startswith(default), name


def test_the_search_finds_what_is_surely_read() -> None:
    assert {"SECRET_KEY", "DATABASE_URL", "PORT", "KEPT_DAYS", "WEB_WORKERS"} <= _read()


def _read() -> set[str]:
    found = {
        name
        for path in _sources()
        for pair in _READ.findall(path.read_text(encoding="utf-8"))
        for name in pair
        if name
    }
    return found - NOT_SETTINGS


def _read_numbers() -> Iterator[tuple[str, str, str]]:
    """Yield the name, the default and the bounds of each variable that is a whole number."""
    for path in _sources():
        for name, *numbers in _NUMBER.findall(path.read_text(encoding="utf-8")):
            default, low, high = (number.replace("_", "") for number in numbers)
            yield name, default, f"{low} to {high}"


def _sources() -> Iterator[Path]:
    for folder in READ_BY:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "tests" not in path.parts)


def _explained() -> set[str]:
    rows = _NAMED.findall(PAGE.read_text(encoding="utf-8").split("## The installation", 1)[1])
    return {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}
