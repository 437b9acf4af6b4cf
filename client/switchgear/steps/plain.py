"""What may be kept: JSON."""

import json
from typing import Any


def plain(value: Any, what: str) -> Any:
    """`value` as it comes back from a store: so a first run sees what a resumed one would. Raises
    :class:`TypeError`, naming `what`, if it is no JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{what} must be JSON: {error!s:.200}") from None
