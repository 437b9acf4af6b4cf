"""Bisect a failing batch of notes to isolate the bad ones. Pure."""

from collections.abc import Set

from .instance_sql import Ack, Said

Notes = tuple[list[Said], list[Ack]]


def halved(said: list[Said], acks: list[Ack]) -> list[Notes]:
    """Split a batch of more than one note in two; the part to write first comes last."""
    if said and acks:
        return [([], acks), (said, [])]
    some, more = len(said) // 2, len(acks) // 2
    return [(said[some:], acks[more:]), (said[:some], acks[:more])]


def only(names: Set[str], said: list[Said], acks: list[Ack]) -> Notes:
    """Return the notes of the instances in `names`."""
    return [one for one in said if one.id in names], [ack for ack in acks if ack.instance in names]
