"""Dry runs: a change is made and rolled back, so that its exact result is known."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def discard_writes() -> Iterator[None]:
    """Roll back all writes of this context at its end, so that none of its commit hooks runs."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
