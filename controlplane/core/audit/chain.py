"""The hash chain of the audit trail: hashing and verification. Pure.

Each row's hash is the SHA-256, in hex, over the canonical JSON of all its fields but the hash
itself; the field `previous_hash` links it to the row before. The first row follows 64 zeros.
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
class Verdict:
    """The result of verifying a chain.

    `bad_id` is the first invalid row, `head` the last valid one.
    """

    rows: int
    head_id: int
    head_hash: str
    bad_id: int | None = None
    problem: str = ""

    @property
    def intact(self) -> bool:
        return self.bad_id is None


def digest(row: Mapping[str, Any]) -> str:
    """Return the hash of one row, from its `FIELDS` (`at` as RFC 3339 text)."""
    text = canonical.dumps({field: row[field] for field in FIELDS})
    return hashlib.sha256(text.encode()).hexdigest()


def verify(
    rows: Iterable[Mapping[str, Any]],
    anchors: Mapping[int, str] | None = None,
    *,
    after: tuple[int, str] = (0, GENESIS),
) -> Verdict:
    """Check rows in order of id. `anchors` (id → hash), published elsewhere, must agree too.

    Anchors expose what the chain alone can't: a trail that was rewritten and rehashed, or cut.
    `after` is the row (id, hash) that those rows follow.
    """
    pending = dict(anchors or {})
    count, (last_id, last_hash) = 0, after
    for row in rows:
        problem = _problem(row, last_id, last_hash, pending.pop(row["id"], None))
        if problem:
            return Verdict(count, last_id, last_hash, row["id"], problem)
        count, last_id, last_hash = count + 1, row["id"], row["hash"]
    if pending:
        missing = min(pending)
        return Verdict(count, last_id, last_hash, missing, "an anchored row is missing")
    return Verdict(count, last_id, last_hash)


def _problem(row: Mapping[str, Any], last_id: int, last_hash: str, anchor: str | None) -> str:
    if row["id"] != last_id + 1:
        return f"row {last_id + 1} is missing"
    if row["previous_hash"] != last_hash:
        return "it does not follow the row before"
    if row["hash"] != digest(row):
        return "its content does not match its hash"
    if anchor is not None and row["hash"] != anchor:
        return "it does not match its anchor"
    return ""
