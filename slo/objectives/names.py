"""Names of SLOs and threshold rules, which are part of their URLs. Pure."""

import re
from collections.abc import Collection

from controlplane.core.json_values import Errors, add_error

MAX_NAME_LENGTH = 100
NAME = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME_LENGTH - 1}}}"
_NAME = re.compile(NAME, re.ASCII)


def is_valid_name(text: str, reserved: Collection[str]) -> bool:
    return _NAME.fullmatch(text) is not None and text not in reserved


def check_name(name: str, reserved: Collection[str], errors: Errors) -> None:
    if name in reserved:
        add_error(errors, "name", "This name is reserved for a page. Use another one.")
    elif not is_valid_name(name, reserved):
        add_error(
            errors,
            "name",
            f"Must be 1 to {MAX_NAME_LENGTH} of the letters, digits and signs A-Z a-z 0-9 . _ - and"
            " begin with a letter or digit.",
        )
