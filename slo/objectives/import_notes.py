"""Errors and remarks collected while documents of other tools are converted. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from controlplane.core.json_values import Errors, add_error, escape_surrogates
from slo.arithmetic.objective import json_number


@dataclass
class ImportNotes:
    """Errors by path, and remarks for people on fields that were left out or changed."""

    errors: Errors = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def wrong(self, place: str, message: str) -> None:
        add_error(self.errors, place, message)

    def remark(self, place: str, message: str) -> None:
        if (text := escape_surrogates(f"{place}: {message}")) not in self.remarks:
            self.remarks.append(text)

    def drop(self, place: str, fields: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Add a remark for each field of `names` (field: reason) that `fields` has."""
        for name, reason in names.items():
            if fields.get(name):
                self.remark(f"{place}.{name}", f"Ignored: {reason}")

    def drop_unknown(self, place: str, fields: Mapping[str, Any], known: Collection[str]) -> None:
        """Add a remark for each field that is not in `known`."""
        for name in fields:
            if name not in known:
                self.remark(f"{place}.{name}", "Ignored: an unknown field.")

    def read_percent(self, raw: Any, place: str) -> int | float:
        """Return a percentage as a share; 0.5 after an error."""
        try:
            percent = Decimal(str(raw))
        except InvalidOperation:
            percent = Decimal(0)
        if isinstance(raw, bool) or not percent.is_finite() or not 0 < percent < 100:
            self.wrong(place, "Must be a percentage above 0 and below 100, such as 99.9.")
            return 0.5
        return json_number(percent / 100)


def read_labels(raw: Any) -> dict[str, Any]:
    """Return labels with numbers and truth values as texts, as Kubernetes and Prometheus have."""
    found: dict[str, Any] = {}
    for name, value in as_mapping(raw).items():
        if isinstance(value, bool):
            value = str(value).lower()
        found[str(name)] = str(value) if isinstance(value, int | float) else value
    return found


def as_mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}
