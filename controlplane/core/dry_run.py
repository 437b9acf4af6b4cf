"""Doing something for real and taking all of it back: what a dry run shows is what would happen."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def rehearsal() -> Iterator[None]:
    """Everything written inside is rolled back at the end, and nobody is woken."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
