"""Channels with settings in their target's row, found by their destination."""

from controlplane.notify.models.targets import Target


class SeenSecrets:
    """Secrets read by this process, for redaction."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def remember(self, *texts: str) -> None:
        """Add texts, except those too short to be secrets."""
        self._texts.update(text for text in texts if len(text) >= 8)

    def all(self) -> list[str]:
        """Return the secrets, the longest first."""
        return sorted(self._texts, key=len, reverse=True)


def find_channel(destination: str) -> Target | None:
    """Return the channel of a destination `key:id`, None unless its address still is `key`."""
    key, _, number = destination.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    return Target.objects.filter(pk=int(number), address=key).first()
