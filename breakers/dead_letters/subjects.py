"""Subjects of audit rows, jobs and messages about a stream. Pure."""

from breakers.dead_letters.models import LetterStream
from breakers.message_facts import MAX_THREAD_LENGTH, shorten_with_digest

MAX_TARGET_LENGTH = 200


def audit_target(stream: LetterStream) -> str:
    """Return `dlq:server/name`; a too long name is shortened and ends with a digest."""
    return shorten_with_digest(f"dlq:{stream}", MAX_TARGET_LENGTH)


def message_thread(stream: LetterStream) -> str:
    """Return the subject that joins all messages about a stream in one thread."""
    return shorten_with_digest(f"dlq:{stream}", MAX_THREAD_LENGTH)
