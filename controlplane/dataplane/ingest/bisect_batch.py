"""Notes of which some can't be written: the wrong ones are found by halves. Pure."""

from collections.abc import Set

from .instance_sql import Ack, Said

Notes = tuple[list[Said], list[Ack]]


def halved(said: list[Said], acks: list[Ack]) -> list[Notes]:
    """Two parts of more than one note, those to be written first last."""
    if said and acks:
        return [([], acks), (said, [])]
    some, more = len(said) // 2, len(acks) // 2
    return [(said[some:], acks[more:]), (said[:some], acks[:more])]


def only(names: Set[str], said: list[Said], acks: list[Ack]) -> Notes:
    """The notes of these instances."""
    return [one for one in said if one.id in names], [ack for ack in acks if ack.instance in names]
