"""Form editor of a ramp plan, with buttons that add and remove steps and gates.

:func:`switches.ramps.plan.read_plan` validates; each error is shown at its field.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controlplane.core.errors import InvalidInput
from controlplane.core.gates import kinds
from controlplane.core.gates.fields import GateField, format_values, parse_number, parse_texts
from controlplane.core.gates.kinds import GATE_KINDS

from . import descriptions
from . import plan as plans
from .plan import STEP_FIELDS

CHECK, ADD_STEP = "check", "add-step"
NEW = "new"
ADD_A_STEP_FOCUS = "percent"
MAX_TYPED_LENGTH = 40
MAX_TEXT_LENGTH = 250

_STEP_FIELD = re.compile(r"step-([0-9]{1,2})-percent")
_GATE_FIELD = re.compile(r"step-([0-9]{1,2})-gate-([0-9]{1,2})-type")
_BUTTON = re.compile(r"(remove-step|add-gate|remove-gate)-([0-9]{1,2})(?:-([0-9]{1,2}))?")
_MISREAD = "Use 90s, 5m or 2h, or seconds."


@dataclass(frozen=True)
class TypedGate:
    """A gate as typed into the form: texts by input name."""

    type: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TypedStep:
    """A step as typed into the form, with its gates."""

    values: Mapping[str, str]
    gates: tuple[TypedGate, ...] = ()


@dataclass(frozen=True)
class Editor:
    """The state of the plan form; `focus` is the name of the input to focus."""

    steps: tuple[TypedStep, ...]
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    focus: str = ""

    def plan(self) -> list[dict[str, Any]]:
        """Return the typed plan for :func:`switches.ramps.plan.read_plan`, without blank fields."""
        return [
            {
                **parse_texts(STEP_FIELDS, step.values),
                "gates": [
                    {"type": gate.type, **parse_texts(kinds.get_fields(gate.type), gate.values)}
                    for gate in step.gates
                ],
            }
            for step in self.steps
        ]

    def with_errors(self, errors: Mapping[str, Sequence[str]]) -> "Editor":
        """Return a copy with these errors; an unreadable duration gets the form's own message."""
        if not errors:
            return replace(self, errors={})
        groups: list[tuple[str, tuple[GateField, ...], Mapping[str, str]]] = []
        for index, step in enumerate(self.steps):
            groups.append((f"plan[{index}]", STEP_FIELDS, step.values))
            groups += [
                (f"plan[{index}].gates[{number}]", kinds.get_fields(gate.type), gate.values)
                for number, gate in enumerate(step.gates)
            ]
        invalid = {
            f"{where}.{field.name}": [_MISREAD]
            for where, fields, values in groups
            for field in fields
            if field.is_invalid_duration(values.get(field.input_name, ""))
        }
        return replace(self, errors={**errors, **invalid})

    @property
    def shares(self) -> str:
        """Return the steps' shares as text: `5 %, 25 %, 100 %`, with `?` for an unreadable one."""
        percents = [parse_number(step.values.get("percent", "")) for step in self.steps]
        return ", ".join(
            descriptions.format_percent(percent) if isinstance(percent, int | float) else "?"
            for percent in percents
        )

    @property
    def gates(self) -> int:
        return sum(len(step.gates) for step in self.steps)

    @property
    def unwatched(self) -> list[int]:
        """Return the numbers of steps without a gate that can fail."""
        return [
            number
            for number, step in enumerate(self.steps, 1)
            if not any((kind := GATE_KINDS.get(gate.type)) and kind.can_fail for gate in step.gates)
        ]

    @property
    def is_watched(self) -> bool:
        return len(self.unwatched) < len(self.steps)

    @property
    def is_hasty(self) -> bool:
        """Return True if the plan is valid and hasty (:func:`switches.ramps.plan.is_hasty`)."""
        try:
            return plans.is_hasty(plans.read_plan(self.plan()))
        except InvalidInput:
            return False

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [
            (shown["name"], shown["value"])
            for step in self.rows()
            for shown in (
                *step["fields"],
                *(each for gate in step["gates"] for each in (gate["type_field"], *gate["fields"])),
            )
        ]

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(index, step) for index, step in enumerate(self.steps)]

    def _row(self, index: int, step: TypedStep) -> dict[str, Any]:
        name, where = f"step-{index}", f"plan[{index}]"
        return {
            "index": index,
            "number": index + 1,
            "is_last": index + 1 == len(self.steps),
            "fields": self._fields(STEP_FIELDS, name, where, step.values),
            "new": f"{name}-{NEW}",
            "errors": [*self.errors.get(where, ()), *self.errors.get(f"{where}.gates", ())],
            "gates": [
                self._gate(f"{name}-gate-{number}", f"{where}.gates[{number}]", number, gate)
                for number, gate in enumerate(step.gates)
            ],
        }

    def _gate(self, name: str, where: str, number: int, gate: TypedGate) -> dict[str, Any]:
        return {
            "number": number,
            "title": kind.label if (kind := GATE_KINDS.get(gate.type)) else gate.type,
            "type_field": {"name": f"{name}-type", "value": gate.type},
            "errors": [*self.errors.get(where, ()), *self.errors.get(f"{where}.type", ())],
            "fields": self._fields(kinds.get_fields(gate.type), name, where, gate.values),
        }

    def _fields(
        self, fields: Iterable[GateField], name: str, where: str, values: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        return [
            {
                "name": f"{name}-{field.input_name}",
                "label": field.label,
                "kind": field.input,
                "placeholder": field.placeholder,
                "value": values.get(field.input_name, ""),
                "errors": self.errors.get(f"{where}.{field.name}", ()),
                "focused": self.focus == f"{name}-{field.input_name}",
            }
            for field in fields
        ]


def open_plan(plan: Iterable[Mapping[str, Any]]) -> Editor:
    return Editor(
        tuple(
            TypedStep(
                format_values(STEP_FIELDS, step),
                tuple(
                    TypedGate(gate["type"], format_values(kinds.get_fields(gate["type"]), gate))
                    for gate in step["gates"]
                ),
            )
            for step in plan
        )
    )


def read_form(data: Mapping[str, str]) -> Editor | None:
    """Return the plan editor with a form's submitted values, or None if it has no plan fields."""
    steps = sorted({int(match[1]) for name in data if (match := _STEP_FIELD.fullmatch(name))})
    if not steps:
        return None
    gates: dict[int, list[int]] = {}
    for name in data:
        if match := _GATE_FIELD.fullmatch(name):
            gates.setdefault(int(match[1]), []).append(int(match[2]))
    return Editor(
        tuple(
            TypedStep(
                _read_fields(data, f"step-{index}", STEP_FIELDS),
                tuple(
                    TypedGate(type_, _read_fields(data, name, kinds.get_fields(type_)))
                    for number in sorted(gates.get(index, ()))[:MAX_TYPED_LENGTH]
                    for name in (f"step-{index}-gate-{number}",)
                    for type_ in (str(data.get(f"{name}-type", ""))[:24],)
                ),
            )
            for index in steps[:MAX_TYPED_LENGTH]
        )
    )


def press_button(editor: Editor, button: str, data: Mapping[str, str]) -> Editor:
    """Return the plan editor changed by an add or remove button, unchanged by an unknown one."""
    if button == ADD_STEP:
        return _add_step(editor)
    match = _BUTTON.fullmatch(button)
    if match is None or int(match[2]) >= len(editor.steps):
        return editor
    index, steps = int(match[2]), editor.steps
    if match[1] == "remove-step":
        left = steps[:index] + steps[index + 1 :]
        return replace(editor, steps=left) if left else editor
    step, focus = steps[index], ""
    if match[1] == "add-gate":
        type_ = data.get(f"step-{index}-{NEW}", "")
        kind = GATE_KINDS.get(type_)
        if kind is None:
            return editor
        defaults = {field.name: field.default for field in kind.fields}
        gate = TypedGate(type_, format_values(kind.fields, defaults))
        focus = f"step-{index}-gate-{len(step.gates)}-{kind.fields[0].input_name}"
        gates = (*step.gates, gate)
    else:
        number = int(match[3] or 0)
        gates = step.gates[:number] + step.gates[number + 1 :]
    return Editor((*steps[:index], replace(step, gates=gates), *steps[index + 1 :]), focus=focus)


def _add_step(editor: Editor) -> Editor:
    before, last = editor.steps[:-1], editor.steps[-1]
    low = parse_number(before[-1].values.get("percent", "")) if before else 0
    high = parse_number(last.values.get("percent", ""))
    half = ""
    if isinstance(low, int | float) and isinstance(high, int | float):
        total = low + high
        half = f"{total // 2 if total >= 4 else round(total / 2, 2):g}"
    values = {**(before[-1] if before else last).values, "percent": half}
    focus = f"step-{len(before)}-{ADD_A_STEP_FOCUS}"
    return Editor((*before, TypedStep(values), last), focus=focus)


def _read_fields(data: Mapping[str, str], name: str, fields: Iterable[GateField]) -> dict[str, str]:
    return {
        field.input_name: str(data.get(f"{name}-{field.input_name}", "")).strip()[:MAX_TEXT_LENGTH]
        for field in fields
    }
