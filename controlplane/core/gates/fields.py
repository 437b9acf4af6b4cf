"""Fields of ramp plans and gates: validation as JSON, and conversion from form texts. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from controlplane.core import durations

Check = Callable[[Any], Any]
"""Function that returns the value to store, or raises ValueError with a message for the user."""

REQUIRED = object()
TEXT, NUMBER, DURATION = "text", "number", "duration"
MAX_TEXT_LENGTH = 200

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class GateField:
    """A field of a ramp plan or of a gate: `check` validates its JSON value.

    `input` is the type of its form input: `text`, `number`, or `duration` (typed as `5m`, stored in
    seconds). `options` names the list (:data:`.options.OPTION_LISTS`) that has its values. `show`
    returns the text of a value on screens and in messages. Without `default` the field is required.
    """

    name: str
    label: str
    check: Check
    default: Any = REQUIRED
    input: str = TEXT
    placeholder: str = ""
    options: str = ""
    show: Callable[[Any], str] = str

    @property
    def input_name(self) -> str:
        return self.name.removesuffix("_seconds")

    def parse(self, text: str) -> Any:
        """Return the JSON value for the text of a form input.

        An invalid text is returned as it is, because `check` will reject it.
        """
        if self.input == TEXT:
            return text
        return parse_number(text) if self.input == NUMBER else parse_seconds(text)

    def format(self, value: Any) -> str:
        """Return the text of the form input for a JSON value, as a person would type it."""
        if self.input != DURATION:
            return str(value)
        if isinstance(value, int) and value > 0:
            return durations.format_canonical(timedelta(seconds=value))
        return f"{value:g}"

    def is_invalid_duration(self, text: str) -> bool:
        return self.input == DURATION and bool(text) and isinstance(parse_seconds(text), str)


def check_fields(
    fields: Iterable[GateField],
    document: Mapping[str, Any],
    path: str,
    errors: dict[str, list[str]],
) -> dict[str, Any]:
    """Return the validated values of a JSON object, with defaults filled in.

    Errors are added to `errors` by path (`plan[1].gates[0].slo`); an invalid value becomes None.
    """
    by_name = {field.name: field for field in fields}
    for name in document:
        if name not in by_name:
            errors[f"{path}.{name}"[:200]] = [f"Unknown; the fields are {', '.join(by_name)}."]
    values = {}
    for name, field in by_name.items():
        value = document.get(name)
        if value is not None:
            values[name] = check_value(field.check, value, f"{path}.{name}", errors)
        elif field.default is REQUIRED:
            errors[f"{path}.{name}"] = ["Is required."]
        else:
            values[name] = field.default
    return values


def check_value(check: Check, value: Any, path: str, errors: dict[str, list[str]]) -> Any:
    """Return the value as `check` returns it; if it is invalid, add an error and return None."""
    try:
        return check(value)
    except ValueError as error:
        errors[path] = [str(error)]
        return None


def parse_texts(fields: Iterable[GateField], texts: Mapping[str, str]) -> dict[str, Any]:
    """Parse the texts of form inputs into JSON values. Fields without text are left out.

    `texts` maps the name of each input to its text. The result maps field names to values.
    """
    return {
        field.name: field.parse(text) for field in fields if (text := texts.get(field.input_name))
    }


def format_values(fields: Iterable[GateField], values: Mapping[str, Any]) -> dict[str, str]:
    """Convert stored values, by field name, to the texts of form inputs, by input name."""
    return {
        field.input_name: field.format(values[field.name])
        for field in fields
        if isinstance(values.get(field.name), str | int | float)
    }


def number_between(lowest: float, highest: float) -> Check:
    def check(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not lowest <= value <= highest:
            raise ValueError(f"Must be a number from {lowest:g} to {highest:g}.")
        return int(value) if float(value).is_integer() else value

    return check


def whole_number_between(lowest: int, highest: int) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError(f"Must be a whole number from {lowest} to {highest}.")
        return value

    return check


def check_text(value: Any) -> str:
    """Return the stripped text. Raise ValueError unless it has 1 to 200 characters."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or len(value) > MAX_TEXT_LENGTH
        or "\x00" in value
    ):
        raise ValueError(f"Must be a name of 1 to {MAX_TEXT_LENGTH} characters.")
    return value.strip()


def check_duration(value: Any) -> str:
    """Return a duration such as `5m` unchanged. Raise ValueError if it is invalid."""
    if not isinstance(value, str):
        raise ValueError("Must be a duration such as `5m`.")
    durations.parse(value)
    return value


def parse_number(text: str) -> Any:
    """Return the number written in a form text, or the text itself if it is no number."""
    typed = text.removesuffix("%").strip()
    if not _NUMBER.fullmatch(typed):  # Python also reads `1_0`, `٥` and `nan`.
        return text
    value = float(typed)
    return int(value) if value.is_integer() else value


def parse_seconds(text: str) -> Any:
    """Return the seconds that a form text gives as a number or duration, or the text if neither."""
    value = parse_number(text)
    if not isinstance(value, str):
        return value
    try:
        return int(durations.parse(text.replace(" ", "")).total_seconds())
    except ValueError:
        return text
