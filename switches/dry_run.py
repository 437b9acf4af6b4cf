"""Dry runs: a change is made to learn its exact result, then rolled back."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def discard_writes() -> Iterator[None]:
    """Context manager for dry runs: roll back all writes of its block, and run no commit hooks."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
