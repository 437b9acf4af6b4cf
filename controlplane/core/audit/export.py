"""CSV rows of the audit trail, safe to open in a spreadsheet. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from controlplane.core.audit.chain import FIELDS

COLUMNS = (*FIELDS, "hash")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""First characters of spreadsheet formulas, including fullwidth forms."""


def build_csv_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the header and each row; texts that look like a formula get a leading quote."""
    yield list(COLUMNS)
    for row in rows:
        yield [_escape_formula(row[column]) for column in COLUMNS]


def _escape_formula(value: Any) -> str:
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
