"""The sources of dead letters as this process was started with them."""

from django.conf import settings

from breakers.dead_letters.sources import DeadLetterSources, StreamPattern


def sources() -> DeadLetterSources:
    """What the environment says of dead letters."""
    given = settings.DEAD_LETTERS
    return DeadLetterSources(
        servers=given.servers,
        patterns=tuple(StreamPattern(dead, origin) for dead, origin in given.patterns),
        kept_days=given.kept_days,
        most_kept=given.most_kept,
        hidden_keys=given.hidden_keys,
    )
