"""The format of dependency names that the console accepts."""

import re

NAME_FORMAT = "caller->callee, each 1 to 60 of a-z, 0-9 and -"

_MAX_PART = 60
_PART = rf"[a-z0-9-]{{1,{_MAX_PART}}}"
_NAME = re.compile(rf"({_PART})->{_PART}", re.ASCII)


def caller_of(name: str) -> str | None:
    """Return the calling service in a dependency's name; None if the console rejects the name."""
    found = _NAME.fullmatch(name)
    return None if found is None else found[1]


def suggested_name(name: str) -> str | None:
    """Return a name like `name` that the console accepts, or None if there is none."""
    caller, arrow, callee = name.lower().replace("→", "->").partition("->")
    parts = [
        re.sub(r"[^a-z0-9]+", "-", each).strip("-")[:_MAX_PART].strip("-")
        for each in (caller, callee)
    ]
    return "->".join(parts) if arrow and all(parts) else None
