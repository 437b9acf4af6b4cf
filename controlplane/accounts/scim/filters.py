"""Parser of SCIM filters and paths (RFC 7644, figures 1 and 7), and evaluation on JSON values."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import InvalidRequest

MAX_LENGTH = 4096
MAX_DEPTH = 16
OPERATORS = frozenset({"eq", "ne", "co", "sw", "ew", "gt", "ge", "lt", "le"})
_TOKEN = re.compile(r'\s*+("(?:[^"\\]|\\.)*"|[()\[\]]|[^\s()\[\]"]+)')
_URN = re.compile(r"urn:[^\s]+:(?=[A-Za-z$])", re.IGNORECASE)
_NAME = re.compile(r"\$?[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class AttributeComparison:
    """`attribute operator value`; the operator `pr` (present) has the value None."""

    attribute: str
    operator: str
    value: Any


@dataclass(frozen=True)
class Combination:
    """Several expressions; `operator` is `and`, `or`, or `not` of a single one."""

    operator: str
    parts: "Sequence[Expression]"


@dataclass(frozen=True)
class ValueFilter:
    """`attribute[inner]`: some value of a multi-valued attribute matches the inner expression."""

    attribute: str
    inner: "Expression"


Expression = AttributeComparison | Combination | ValueFilter


@dataclass(frozen=True)
class Path:
    """The target of a PATCH operation: `attribute`, `attribute[inner]`, each with or without `sub`.

    Names are as sent.
    """

    attribute: str
    inner: Expression | None = None
    sub: str = ""


def parse_filter(text: str) -> Expression:
    """Return the expression of a filter; raise :class:`InvalidRequest` (invalidFilter)."""
    parser = _Parser(text, "invalidFilter")
    found = parser.read_expression()
    parser.require_end()
    return found


def parse_path(text: str) -> Path:
    """Return the target of a PATCH operation; raise :class:`InvalidRequest` (invalidPath)."""
    parser = _Parser(text, "invalidPath")
    attribute, dot, sub = parser.read_name().partition(".")
    inner = None
    if parser.accept("["):
        inner = parser.read_expression()
        parser.require("]")
        if not parser.is_at_end:
            rest = parser.read_word()
            if dot or not rest.startswith("."):
                raise parser.build_error()
            dot, sub = ".", rest[1:]
    parser.require_end()
    if not _NAME.fullmatch(attribute) or (dot and not _NAME.fullmatch(sub)):
        raise parser.build_error()
    return Path(attribute, inner, sub)


def matches(expression: Expression, value: Mapping[str, Any]) -> bool:
    """Return True if a complex value, such as an e-mail address with its type, matches."""
    if isinstance(expression, Combination):
        results = [matches(part, value) for part in expression.parts]
        if expression.operator == "not":
            return not results[0]
        return all(results) if expression.operator == "and" else any(results)
    if isinstance(expression, ValueFilter):
        raise InvalidRequest("invalidFilter", f"{expression.attribute} has no values of its own.")
    present = {name.casefold(): found for name, found in value.items()}
    return compare(expression, present.get(expression.attribute.casefold()))


def compare(comparison: AttributeComparison, found: Any) -> bool:
    """Return True if a value fulfills the comparison; texts are compared without case."""
    operator, wanted = comparison.operator, comparison.value
    if operator == "pr":
        return found not in (None, "", [], {})
    if operator in {"eq", "ne"}:
        is_equal = bool(_fold(found) == _fold(wanted))
        return is_equal is (operator == "eq")
    if not isinstance(found, str) or not isinstance(wanted, str):
        return False
    found, wanted = found.casefold(), wanted.casefold()
    if operator == "co":
        return wanted in found
    if operator in {"sw", "ew"}:
        return bool(found.startswith(wanted) if operator == "sw" else found.endswith(wanted))
    raise InvalidRequest(
        "invalidFilter", f"{comparison.attribute} can't be compared by {operator}."
    )


def strip_schema(name: str) -> str:
    """Return an attribute's name without the URN of its schema."""
    return _URN.sub("", name, count=1)


def find_equal_values(expression: Expression) -> dict[str, Any] | None:
    """Return the values that `eq` comparisons joined by `and` require, by name; else None."""
    if isinstance(expression, AttributeComparison) and expression.operator == "eq":
        return {expression.attribute: expression.value}
    if not (isinstance(expression, Combination) and expression.operator == "and"):
        return None
    found: dict[str, Any] = {}
    for part in expression.parts:
        values = find_equal_values(part)
        if values is None:
            return None
        found |= values
    return found


def _fold(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


class _Parser:
    """A recursive descent parser; its errors have the given `scimType`."""

    def __init__(self, text: str, scim_type: str) -> None:
        self._scim_type = scim_type
        self._text = text
        if len(text) > MAX_LENGTH:
            raise InvalidRequest(scim_type, f"It has more than {MAX_LENGTH} characters.")
        self._tokens: list[str] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None:
                raise self.build_error()
            self._tokens.append(found[1])
            position = found.end()
        self._position = 0
        self._depth = 0

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._tokens)

    def build_error(self) -> InvalidRequest:
        return InvalidRequest(self._scim_type, f"It can't be read: {self._text[:200]}")

    def accept(self, wanted: str) -> bool:
        """Read the next token if it is this one, in any case."""
        if self.is_at_end or self._tokens[self._position].casefold() != wanted:
            return False
        self._position += 1
        return True

    def require(self, wanted: str) -> None:
        if not self.accept(wanted):
            raise self.build_error()

    def require_end(self) -> None:
        if not self.is_at_end:
            raise self.build_error()

    def read_word(self) -> str:
        if self.is_at_end or self._tokens[self._position][0] in '()[]"':
            raise self.build_error()
        self._position += 1
        return self._tokens[self._position - 1]

    def read_name(self) -> str:
        """Read an attribute's name, without the URN of its schema."""
        return strip_schema(self.read_word())

    def read_expression(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidRequest(self._scim_type, f"It is nested deeper than {MAX_DEPTH} levels.")
        parts = [self._read_conjunction()]
        while self.accept("or"):
            parts.append(self._read_conjunction())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Combination("or", parts)

    def _read_conjunction(self) -> Expression:
        parts = [self._read_term()]
        while self.accept("and"):
            parts.append(self._read_term())
        return parts[0] if len(parts) == 1 else Combination("and", parts)

    def _read_term(self) -> Expression:
        is_negated = self.accept("not")
        if self.accept("("):
            found = self.read_expression()
            self.require(")")
            return Combination("not", [found]) if is_negated else found
        if is_negated:
            raise self.build_error()
        name = self.read_name()
        if self.accept("["):
            inner = self.read_expression()
            self.require("]")
            return ValueFilter(name, inner)
        operator = self.read_word().casefold()
        if operator == "pr":
            return AttributeComparison(name, operator, None)
        if operator not in OPERATORS or self.is_at_end:
            raise self.build_error()
        return AttributeComparison(name, operator, self._read_value())

    def _read_value(self) -> Any:
        text = self._tokens[self._position]
        self._position += 1
        try:
            value = json.loads(text if text[0] == '"' else text.casefold())
        except ValueError as error:
            raise self.build_error() from error
        if isinstance(value, str) and ("\x00" in value or not _is_encodable(value)):
            raise self.build_error()
        return value


def _is_encodable(text: str) -> bool:
    """Return False for lone surrogates, which JSON can escape and PostgreSQL can't store."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
