"""What audit rows, jobs and messages about a stream of dead letters are filed under. Pure."""

import hashlib

from .models import LetterStream

MAX_TARGET_LENGTH = 200
MAX_SUBJECT_LENGTH = 120
"""Of messages, which share a thread by it."""


def of(stream: LetterStream, longest: int = MAX_TARGET_LENGTH) -> str:
    """`dlq:server/name`; of a very long name its beginning and a digest."""
    whole = f"dlq:{stream}"
    if len(whole) <= longest:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: longest - 17]}~{digest}"
