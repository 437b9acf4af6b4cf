"""Hash chain of the audit trail: hashing and verification. Pure.

A row's hash is the SHA-256, in hex, of the canonical JSON of all its fields except the hash.
`previous_hash` is the hash of the row before; that of the first row is 64 zeros.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.core import canonical

GENESIS = "0" * 64
FIELDS = (
    "id",
    "at",
    "actor_type",
    "actor_name",
    "action",
    "target",
    "reason",
    "before",
    "after",
    "request_id",
    "ip",
    "previous_hash",
)


@dataclass(frozen=True)
class ChainVerdict:
    """Result of a chain's verification.

    `bad_id` is the id of the first invalid row, `head_id` and `head_hash` are those of the last
    valid row.
    """

    rows: int
    head_id: int
    head_hash: str
    bad_id: int | None = None
    problem: str = ""

    @property
    def intact(self) -> bool:
        return self.bad_id is None


def hash_row(row: Mapping[str, Any]) -> str:
    """Return the hash of a row's `FIELDS`; the time `at` is RFC 3339 text."""
    text = canonical.dumps({field: row[field] for field in FIELDS})
    return hashlib.sha256(text.encode()).hexdigest()


def verify(
    rows: Iterable[Mapping[str, Any]],
    anchors: Mapping[int, str] | None = None,
    *,
    after: tuple[int, str] = (0, GENESIS),
) -> ChainVerdict:
    """Verify audit rows in id order, and against `anchors` (id → hash) published elsewhere.

    Anchors reveal a truncated trail, and a rewritten trail with recomputed hashes. `after` is the
    id and hash of the row before the first of `rows`.
    """
    pending = dict(anchors or {})
    count, (last_id, last_hash) = 0, after
    for row in rows:
        problem = _find_problem(row, last_id, last_hash, pending.pop(row["id"], None))
        if problem:
            return ChainVerdict(count, last_id, last_hash, row["id"], problem)
        count, last_id, last_hash = count + 1, row["id"], row["hash"]
    if pending:
        missing = min(pending)
        return ChainVerdict(count, last_id, last_hash, missing, "an anchored row is missing")
    return ChainVerdict(count, last_id, last_hash)


def _find_problem(row: Mapping[str, Any], last_id: int, last_hash: str, anchor: str | None) -> str:
    if row["id"] != last_id + 1:
        return f"row {last_id + 1} is missing"
    if row["previous_hash"] != last_hash:
        return "it does not follow the row before"
    if row["hash"] != hash_row(row):
        return "its content does not match its hash"
    if anchor is not None and row["hash"] != anchor:
        return "it does not match its anchor"
    return ""
