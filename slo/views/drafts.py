"""The texts typed into the form of an SLO, and their conversion from and to the SLO's document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from slo.arithmetic.objective import (
    BurnRateRule,
    ObjectiveMeaning,
    RuleMeaning,
    describe_objective,
    describe_rule,
)
from slo.models import Slo
from slo.objectives import documents, rules

Errors = Mapping[str, Sequence[str]]

SIMPLE = ("name", "service", "owner", "description", "runbook_url", "kind")
NUMBERS = ("window_days", "threshold_ms", "min_events")
SLICE = "slice_target"
SOURCE = ("url", "good", "total")
RULE = ("long", "short", "burn_rate", "severity")
ACTION = ("on", "do", "switch", "expires_in", "on_unknown")
MAX_ROWS = 20
MAX_FIELD_LENGTH = 5000  # characters of one field: far beyond what any may be


@dataclass(frozen=True)
class Draft:
    """The contents of the form of an SLO: every field is a text, as typed.

    `texts` are the single fields by name, with the target in percent; `rules` and `actions` are
    rows of fields.
    """

    texts: Mapping[str, str]
    rules: tuple[Mapping[str, str], ...] = ()
    actions: tuple[Mapping[str, str], ...] = ()

    def text(self, name: str) -> str:
        return self.texts.get(name, "")

    @classmethod
    def from_post(cls, data: Mapping[str, Any], slo: Slo | None = None) -> "Draft":
        """Return the contents of the posted form; an existing `slo` keeps its name."""
        names = (*SIMPLE, *NUMBERS, "target", SLICE, "source", *SOURCE)
        texts = {name: _clean(data.get(name, "")) for name in names}
        return cls(
            texts | ({"name": slo.name} if slo else {}),
            tuple(_parse_rows(data, "rule", RULE)),
            tuple(_parse_rows(data, "action", ACTION)),
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Draft":
        """Return the contents of the form for an SLO document."""
        source = document.get("source") or {}
        texts = {name: _to_text(document.get(name)) for name in (*SIMPLE, *NUMBERS)}
        texts["target"] = _to_text(Decimal(str(document["target"])) * 100)
        slice_target = document.get("slice_target")
        texts[SLICE] = "" if slice_target is None else _to_text(Decimal(str(slice_target)) * 100)
        texts["source"] = str(source.get("type") or "push")
        texts |= {name: _to_text(source.get(name)) for name in SOURCE}
        return cls(
            texts,
            tuple(cls.to_texts(one, RULE) for one in document["rules"]),
            tuple(cls.to_texts(one, ACTION) for one in document.get("actions") or []),
        )

    @classmethod
    def from_slo(cls, slo: Slo) -> "Draft":
        return cls.from_document({**documents.to_document(slo), "name": slo.name})

    @staticmethod
    def to_texts(one: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
        """Return the fields `names` of a rule or an action as form texts."""
        return {name: _to_text(one.get(name)) for name in names}

    def document(self) -> dict[str, Any]:
        """Return the form as an SLO document, not validated; unreadable numbers stay texts.

        Empty fields of rules and actions are left out, except burn rates.
        """
        found: dict[str, Any] = {name: self.text(name) for name in SIMPLE if name != "name"}
        found |= {"rules": [], "actions": []}
        found["target"] = _parse_share(self.text("target"))
        found[SLICE] = _parse_share(self.text(SLICE))
        found |= {name: _parse_number(self.text(name)) for name in NUMBERS if self.text(name)}
        if self.text("kind") != "latency":
            found.pop("threshold_ms", None)
        found["source"] = {"type": self.text("source") or "push"}
        if self.text("source") == "prometheus":
            found["source"] |= {name: self.text(name) for name in SOURCE}
        for row in self.rules:
            burn_rate = _parse_number(row["burn_rate"]) if row["burn_rate"] else None
            filled = {name: text for name, text in row.items() if text}
            found["rules"].append({**filled, "burn_rate": burn_rate})
        for row in self.actions:
            names = ACTION if row["do"] == "trip" else ("on", "do", "on_unknown")
            found["actions"].append({name: row[name] for name in names if row[name]})
        return found

    def apply_button(self, do: str) -> "Draft":
        """Return the draft after the button `do` added or removed a row, or chose preset rules."""
        verb, _, place = do.rpartition("-")
        match verb:
            case "add" if place == "rule":
                return replace(self, rules=(*self.rules, _NEW_RULE)[:MAX_ROWS])
            case "add" if place == "action":
                return replace(self, actions=(*self.actions, _NEW_ACTION)[:MAX_ROWS])
            case "remove-rule":
                return replace(self, rules=_remove_row(self.rules, place))
            case "remove-action":
                return replace(self, actions=_remove_row(self.actions, place))
        preset = do.removeprefix("preset-")
        if preset not in rules.PRESETS:
            return self
        chosen = rules.reachable_rules(preset, *(parse_target(self) or USUAL))
        texts = tuple(self.to_texts(one, RULE) for one in chosen)
        return replace(self, rules=texts or self.rules)

    def hidden(self) -> Iterator[tuple[str, str]]:
        """Yield the name and text of every field, for hidden inputs."""
        yield from self.texts.items()
        for kind, rows in (("rule", self.rules), ("action", self.actions)):
            for place, row in enumerate(rows):
                yield from ((f"{kind}-{place}-{name}", text) for name, text in row.items())


USUAL = (Decimal("0.999"), 30)
_NEW_RULE = {"long": "", "short": "", "burn_rate": "", "severity": "page"}
_NEW_ACTION = {"on": "page", "do": "hold_ramps", "switch": "", "expires_in": "", "on_unknown": ""}


@dataclass(frozen=True)
class DraftRow:
    number: int
    texts: Mapping[str, str]
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    other_errors: Sequence[str] = ()
    meaning: Any = None

    @property
    def index(self) -> int:
        return self.number - 1


def make_rows(
    kind: str, texts: Sequence[Mapping[str, str]], errors: Errors, meanings: Sequence[Any] = ()
) -> list[DraftRow]:
    return [
        DraftRow(
            place + 1,
            row,
            {name: errors_about(f"{kind}.{place}.{name}", errors) for name in row},
            list(errors.get(f"{kind}.{place}", ())),
            meanings[place] if place < len(meanings) else None,
        )
        for place, row in enumerate(texts)
    ]


def parse_target(draft: Draft) -> tuple[Decimal, int] | None:
    """Return target (a share) and period (days), None if either can't be parsed."""
    target, days = _parse_share(draft.text("target")), _parse_number(draft.text("window_days"))
    if not isinstance(target, float) or not 0 < target < 1:
        return None
    return (Decimal(str(target)), days) if isinstance(days, int) and 0 < days < 400 else None


def describe_draft(draft: Draft) -> tuple[ObjectiveMeaning | None, list[RuleMeaning | None]]:
    """Return figures that explain a draft's target and period, and those of each of its rules.

    None for what can't be parsed.
    """
    found = parse_target(draft)
    if found is None:
        return None, [None] * len(draft.rules)
    return describe_objective(*found), [_describe_rule(one, *found) for one in draft.rules]


def _describe_rule(texts: Mapping[str, str], target: Decimal, days: int) -> RuleMeaning | None:
    burn_rate = _parse_number(texts["burn_rate"])
    if isinstance(burn_rate, str) or burn_rate <= 0:
        return None
    exact = Decimal(str(burn_rate))
    if not rules.can_fire(exact, target):
        return None
    try:
        return describe_rule(BurnRateRule(texts["long"], texts["short"], exact, ""), target, days)
    except ValueError:
        return None


def errors_about(path: str, errors: Errors) -> list[str]:
    """Return the errors of the field at `path`, such as `rules.1`, and of its parts."""
    return [
        text
        for place, texts in errors.items()
        if place == path or place.startswith(f"{path}.")
        for text in texts
    ]


def errors_by_field(errors: Errors) -> dict[str, list[str]]:
    """Return the errors by field; for `rules` and `actions`, without those of single rows."""
    names = (*SIMPLE, *NUMBERS, "target", SLICE)
    found = {name: errors_about(name, errors) for name in names}
    found |= {name: errors_about(f"source.{name}", errors) for name in SOURCE}
    found["source"] = [*errors.get("source", ()), *errors.get("source.type", ())]
    return found | {name: list(errors.get(name, ())) for name in ("rules", "actions")}


def unplaced_errors(errors: Errors) -> list[str]:
    """Return the errors that do not belong to a field of the form, as texts."""
    shown = {*SIMPLE, *NUMBERS, "target", SLICE, "source", "rules", "actions"}
    return [
        f"{place}: {' '.join(texts)}"
        for place, texts in errors.items()
        if place.partition(".")[0] not in shown
    ]


def _parse_rows(
    data: Mapping[str, Any], kind: str, names: Sequence[str]
) -> Iterator[dict[str, str]]:
    for place in range(MAX_ROWS):
        if not any(f"{kind}-{place}-{name}" in data for name in names):
            continue
        yield {name: _clean(data.get(f"{kind}-{place}-{name}", "")) for name in names}


def _remove_row(rows: Sequence[Mapping[str, str]], place: str) -> tuple[Mapping[str, str], ...]:
    return tuple(row for at, row in enumerate(rows) if str(at) != place)


def _clean(text: Any) -> str:
    return str(text).replace("\r\n", "\n").replace("\x00", "")[:MAX_FIELD_LENGTH].strip()


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal | float):
        return f"{Decimal(str(value)).normalize():f}"
    return str(value)


def _parse_number(text: str) -> Any:
    """Return a text as a number, or unchanged if it can't be parsed."""
    try:
        value = Decimal(text.replace(",", "").replace(" ", ""))
    except InvalidOperation:
        return text
    if not value.is_finite() or abs(value.adjusted()) > MAX_FIELD_LENGTH:
        return text
    return int(value) if value == value.to_integral_value() else float(value)


def _parse_share(text: str) -> Any:
    """Return a percentage as a share, 0.999 for `99.9 %`; None if empty, the text if invalid."""
    value = _parse_number(text.removesuffix("%").strip())
    if isinstance(value, str):
        return value or None
    return float(Decimal(str(value)) / 100)
