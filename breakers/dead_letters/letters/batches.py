"""Batches limited by total size and length. Pure."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def batch_by_size(
    sized: Iterable[tuple[Item, int]], *, max_bytes: int, max_items: int
) -> Iterator[list[Item]]:
    """Yield the items of `(item, size)` pairs in batches within both limits, in order.

    An item larger than `max_bytes` gets a batch of its own.
    """
    batch: list[Item] = []
    total = 0
    for item, size in sized:
        if batch and (total + size > max_bytes or len(batch) == max_items):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch
