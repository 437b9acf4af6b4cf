"""Dry runs: a change is made to learn its exact result, then rolled back."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def discard_writes() -> Iterator[None]:
    """Roll back all writes of this context at its end, without running commit hooks."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
