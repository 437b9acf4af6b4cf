"""Dry runs: a change is made to learn its exact result, then rolled back."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def discard_writes() -> Iterator[None]:
    """Context manager: roll back all writes of the block at its end, without commit hooks."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
