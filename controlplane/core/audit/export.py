"""The audit trail as CSV rows that a spreadsheet can't be tricked by. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from controlplane.core.audit.chain import FIELDS

COLUMNS = (*FIELDS, "hash")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Starts of formulas, with the fullwidth forms that spreadsheets treat alike."""


def csv_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the header and each row; texts that a spreadsheet would run get a leading quote."""
    yield list(COLUMNS)
    for row in rows:
        yield [_inert(row[column]) for column in COLUMNS]


def _inert(value: Any) -> str:
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
