"""Groups of a stream's letters with the same error, from the index."""

from dataclasses import dataclass
from datetime import datetime

from breakers.dead_letters.models import LetterStream
from controlplane.core.sql import fetch_all

MAX_GROUPS = 500

_GROUPS = """
    SELECT known.fingerprint, known.error_type, known.pattern, known.sample, lying.count,
           lying.first_at, lying.last_at, lying.oldest, lying.newest
    FROM (
        SELECT group_id, count(*) AS count, min(failed_at) AS first_at, max(failed_at) AS last_at,
               min(position) AS oldest, max(position) AS newest
        FROM breakers_letter
        WHERE stream_id = %(stream)s
          AND (%(since)s::timestamptz IS NULL OR failed_at >= %(since)s)
        GROUP BY group_id
    ) lying JOIN breakers_lettergroup known ON known.id = lying.group_id
    ORDER BY lying.count DESC, lying.last_at DESC, known.fingerprint LIMIT %(most)s
"""


@dataclass(frozen=True)
class ErrorGroup:
    """Letters in a stream with the same error fingerprint.

    `first_at` and `last_at` are the times of the first and last failure. `oldest` and `newest` are
    the positions of the first and last letter in the stream. `pattern` is the error with its
    varying parts masked, `sample` the error of one letter.
    """

    fingerprint: str
    error_type: str
    pattern: str
    sample: str
    count: int
    first_at: datetime
    last_at: datetime
    oldest: str
    newest: str


def list_groups(
    stream: LetterStream, *, since: datetime | None = None, most: int = MAX_GROUPS
) -> list[ErrorGroup]:
    """Return the groups, the largest first; with `since`, only of letters that failed later."""
    values = {"stream": stream.pk, "since": since, "most": most}
    return [ErrorGroup(*row) for row in fetch_all(_GROUPS, values)]
