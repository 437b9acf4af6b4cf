"""The sources of dead letters as this process was started with them."""

from django.conf import settings

from breakers.dead_letters.sources import Pattern, Sources


def sources() -> Sources:
    """What the environment says of dead letters."""
    given = settings.DEAD_LETTERS
    return Sources(
        servers=given.servers,
        patterns=tuple(Pattern(dead, origin) for dead, origin in given.patterns),
        kept_days=given.kept_days,
        most_kept=given.most_kept,
        hidden_keys=given.hidden_keys,
    )
