"""Bisect a failing batch of notes to isolate the bad ones. Pure."""

from collections.abc import Set

from .instance_sql import Ack, Presence

Notes = tuple[list[Presence], list[Ack]]


def bisect(said: list[Presence], acks: list[Ack]) -> list[Notes]:
    """Split a batch of more than one note in two; the part to write first comes last."""
    if said and acks:
        return [([], acks), (said, [])]
    some, more = len(said) // 2, len(acks) // 2
    return [(said[some:], acks[more:]), (said[:some], acks[:more])]


def select_notes(names: Set[str], said: list[Presence], acks: list[Ack]) -> Notes:
    """Return the notes of the instances in `names`."""
    return [one for one in said if one.id in names], [ack for ack in acks if ack.instance in names]
