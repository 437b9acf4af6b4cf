"""Errors for unknown query parameters and body fields, with suggestions. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches

from controlplane.core.errors import InvalidInput

MAX_NAMED = 10
MAX_NAME_LENGTH = 60


def refuse_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise :class:`InvalidInput`, naming each name that is not in `known`."""
    allowed = sorted(known)
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise InvalidInput(
            {
                name[:MAX_NAME_LENGTH]: [build_unknown_message(name, allowed, "query parameter")]
                for name in unknown[:MAX_NAMED]
            }
        )


def build_unknown_message(name: str, known: Iterable[str], kind: str) -> str:
    """Return the message for an unknown name, with the most similar known name or all of them."""
    names = sorted(known)
    meant = get_close_matches(name.replace("-", "_")[:MAX_NAME_LENGTH], names, n=1, cutoff=0.75)
    if meant:
        return f"Unknown {kind}; did you mean {meant[0]}?"
    return f"Unknown {kind}; allowed: {', '.join(names) or 'none'}."
