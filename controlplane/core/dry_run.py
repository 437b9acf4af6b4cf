"""Dry runs: a change is made and rolled back, so the result is exactly what would happen."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def rehearsal() -> Iterator[None]:
    """Roll back all writes of this context at its end, without wake-ups."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
