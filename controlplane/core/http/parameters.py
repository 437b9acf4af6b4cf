"""Errors for unknown names in queries and bodies, with suggestions. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches

from controlplane.core.errors import InvalidInput

MAX_NAMED = 10
MAX_NAME_LENGTH = 60


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise :class:`InvalidInput` for each name in `given` that is not in `known`."""
    names = sorted(known)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidInput(
            {
                name[:MAX_NAME_LENGTH]: [unknown_message(name, names, "query parameter")]
                for name in unknown[:MAX_NAMED]
            }
        )


def unknown_message(name: str, known: Iterable[str], kind: str) -> str:
    """Return the message for an unknown `name`, with the closest known name, else all of them."""
    names = sorted(known)
    meant = get_close_matches(name.replace("-", "_")[:MAX_NAME_LENGTH], names, n=1, cutoff=0.75)
    if meant:
        return f"Unknown {kind}; did you mean {meant[0]}?"
    return f"Unknown {kind}; known here: {', '.join(names) or 'none'}."
