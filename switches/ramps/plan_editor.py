"""Form editor of a ramp plan; :mod:`.plan_buttons` has its buttons.

The gates are the same for all steps, or set per step. :func:`switches.ramps.plan.read_plan`
validates; each error is shown at its field.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from controlplane.core import durations
from controlplane.core.errors import InvalidInput
from controlplane.core.gates import kinds
from controlplane.core.gates.fields import (
    GateField,
    check_value,
    format_values,
    parse_number,
    parse_texts,
)
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.options import MAX_OPTIONS, OPTION_LISTS, GateOption

from . import descriptions
from . import plan as plans
from .plan import STEP_FIELDS

SHARED, PER_STEP = "all", "step"
GATES_INPUT = "gates"
"""Name of the input that says whether gates are `SHARED` or `PER_STEP`."""
NEW = "new"
MAX_TYPED_LENGTH = 40
MAX_TEXT_LENGTH = 250

_STEP_FIELD = re.compile(r"step-([0-9]{1,2})-percent")
_GATE_FIELD = re.compile(r"(step-[0-9]{1,2}|all)-gate-([0-9]{1,2})-type")
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
    """The state of the plan form; `focus` is the name of the input to focus.

    `shared_gates` are the gates of every step, None if each step has its own. `options` are those
    of each list (:data:`OPTION_LISTS`) that a gate names.
    """

    steps: tuple[TypedStep, ...]
    shared_gates: tuple[TypedGate, ...] | None = None
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    focus: str = ""
    options: Mapping[str, Sequence[GateOption]] = field(default_factory=dict)

    def plan(self) -> list[dict[str, Any]]:
        """Return the typed plan for :func:`switches.ramps.plan.read_plan`, without blank fields."""
        return [
            {
                **parse_texts(STEP_FIELDS, step.values),
                "gates": [
                    {"type": gate.type, **parse_texts(kinds.get_fields(gate.type), gate.values)}
                    for gate in self._gates_of(step)
                ],
            }
            for step in self.steps
        ]

    def names(self) -> dict[str, set[str]]:
        """Return the valid names that gates give, by the list that should have them."""
        names: dict[str, set[str]] = {}
        for _, field_, name in self._iterate_names():
            names.setdefault(field_.options, set()).add(name)
        return names

    def find_name_errors(self, unknown: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
        """Return an error for each field with one of the names in `unknown`, by list."""
        return {
            path: [f"No {OPTION_LISTS[field_.options].noun} is named {name}. Choose another."]
            for path, field_, name in self._iterate_names()
            if name in unknown.get(field_.options, ())
        }

    def _iterate_names(self) -> Iterator[tuple[str, GateField, str]]:
        """Yield path, field and name of each gate's field with a valid name from a list."""
        for index, step in enumerate(self.steps):
            for number, gate in enumerate(self._gates_of(step)):
                for field_ in kinds.get_fields(gate.type):
                    errors: dict[str, list[str]] = {}
                    typed = gate.values.get(field_.input_name, "")
                    name = check_value(field_.check, typed, "", errors) if field_.options else None
                    if name:
                        yield f"plan[{index}].gates[{number}].{field_.name}", field_, name

    def _gates_of(self, step: TypedStep) -> tuple[TypedGate, ...]:
        return step.gates if self.shared_gates is None else self.shared_gates

    def with_errors(self, errors: Mapping[str, Sequence[str]]) -> "Editor":
        """Return a copy with these errors; an unreadable duration gets the form's own message."""
        if not errors:
            return replace(self, errors={})
        groups: list[tuple[str, tuple[GateField, ...], Mapping[str, str]]] = []
        for index, step in enumerate(self.steps):
            groups.append((f"plan[{index}]", STEP_FIELDS, step.values))
            groups += [
                (f"plan[{index}].gates[{number}]", kinds.get_fields(gate.type), gate.values)
                for number, gate in enumerate(self._gates_of(step))
            ]
        invalid = {
            f"{where}.{field.name}": [_MISREAD]
            for where, fields, values in groups
            for field in fields
            if field.is_invalid_duration(values.get(field.input_name, ""))
        }
        return replace(self, errors={**errors, **invalid})

    def share_gates(self) -> "Editor":
        """Return a copy in which every step has the gates of all steps, each gate once."""
        if self.shared_gates is not None:
            return self
        gates: list[TypedGate] = []
        for step in self.steps:
            gates += [gate for gate in step.gates if gate not in gates]
        steps = tuple(replace(step, gates=()) for step in self.steps)
        return replace(self, steps=steps, shared_gates=tuple(gates), errors={})

    def split_gates(self) -> "Editor":
        """Return a copy in which each step has its own gates, at first the shared ones."""
        steps = tuple(replace(step, gates=self._gates_of(step)) for step in self.steps)
        return replace(self, steps=steps, shared_gates=None, errors={})

    @property
    def shares(self) -> str:
        """Return the steps' shares as text: `5 %, 25 %, 100 %`, with `?` for an unreadable one."""
        percents = [parse_number(step.values.get("percent", "")) for step in self.steps]
        return ", ".join(
            descriptions.format_percent(percent) if isinstance(percent, int | float) else "?"
            for percent in percents
        )

    @property
    def summary(self) -> str:
        """Return the steps, their dwell and their gates: `3 steps of 5 min, 1 gate each`.

        Of different dwells, those before the last step are added up: `2 steps, the last after at
        least 8 min`. The duration is left out if a dwell is invalid.
        """
        steps = f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'}{self._dwell_text}"
        if not self.gates:
            return f"{steps}, no gates"
        shown = self.gates if self.shared_gates is None else len(self.shared_gates)
        gates = f"{shown} gate{'' if shown == 1 else 's'}"
        return f"{steps}, {gates}{'' if self.shared_gates is None else ' each'}"

    @property
    def _dwell_text(self) -> str:
        typed = [parse_texts(STEP_FIELDS, step.values) for step in self.steps]
        dwells = [step.get("dwell_seconds", plans.DWELL_SECONDS) for step in typed]
        readable = [dwell for dwell in dwells if isinstance(dwell, int | float)]
        if readable != dwells or not all(0 <= one <= plans.MAX_DWELL_SECONDS for one in readable):
            return ""
        if len({*dwells}) == 1:
            return f" of {durations.format_readable(timedelta(seconds=dwells[0]))}"
        before_last = durations.format_readable(timedelta(seconds=sum(dwells[:-1])))
        return f", the last after at least {before_last}"

    @property
    def gates(self) -> int:
        return sum(len(self._gates_of(step)) for step in self.steps)

    @property
    def option_lists(self) -> set[str]:
        """Return the names of the lists that fields of the gates choose from."""
        gates = (gate for step in self.steps for gate in self._gates_of(step))
        fields = (field_ for gate in gates for field_ in kinds.get_fields(gate.type))
        return {field_.options for field_ in fields if field_.options}

    @property
    def suggestions(self) -> dict[str, Sequence[GateOption]]:
        """Return the options of text fields, by list; other lists are shown as selects."""
        return {name: self.options[name] for name in self.options if not self._is_select(name)}

    @property
    def unwatched(self) -> list[int]:
        """Return the numbers of steps without a gate that can fail."""
        return [
            number
            for number, step in enumerate(self.steps, 1)
            if not any(
                (kind := GATE_KINDS.get(gate.type)) and kind.can_fail
                for gate in self._gates_of(step)
            )
        ]

    @property
    def is_watched(self) -> bool:
        return len(self.unwatched) < len(self.steps)

    @property
    def valid_plan(self) -> list[dict[str, Any]] | None:
        """Return the typed plan as :func:`switches.ramps.plan.read_plan` does, None if invalid."""
        try:
            return plans.read_plan(self.plan())
        except InvalidInput:
            return None

    @property
    def is_hasty(self) -> bool:
        """Return True if the plan is valid and hasty (:func:`switches.ramps.plan.is_hasty`)."""
        plan = self.valid_plan
        return plan is not None and plans.is_hasty(plan)

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(index, step) for index, step in enumerate(self.steps)]

    def _row(self, index: int, step: TypedStep) -> dict[str, Any]:
        name, where = f"step-{index}", f"plan[{index}]"
        return {
            "index": index,
            "number": index + 1,
            "label": str(index + 1),
            "fields": self._fields(STEP_FIELDS, name, where, step.values),
            "errors": self.errors.get(where, ()),
            "group": self._group(index, name, where, step.gates)
            if self.shared_gates is None
            else None,
        }

    @property
    def shared_group(self) -> dict[str, Any] | None:
        """Return the gates of every step for the template; None if each step has its own."""
        if self.shared_gates is None:
            return None
        return self._group(SHARED, SHARED, "plan[0]", self.shared_gates)

    def _group(
        self, key: int | str, name: str, where: str, gates: Sequence[TypedGate]
    ) -> dict[str, Any]:
        return {
            "key": key,
            "of": f" of step {key + 1}" if isinstance(key, int) else "",
            "new": f"{name}-{NEW}",
            "errors": self.errors.get(f"{where}.gates", ()),
            "gates": [
                self._gate(f"{name}-gate-{number}", f"{where}.gates[{number}]", number, gate)
                for number, gate in enumerate(gates)
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
                "value": (value := values.get(field.input_name, "")),
                "list": field.options,
                "select": self._select(field.options, value),
                "errors": self.errors.get(f"{where}.{field.name}", ()),
                "focused": self.focus == f"{name}-{field.input_name}",
            }
            for field in fields
        ]

    def _is_select(self, options: str) -> bool:
        is_closed = OPTION_LISTS[options].find_existing is not None
        return is_closed and len(self.options[options]) <= MAX_OPTIONS

    def _select(self, options: str, value: str) -> dict[str, Any] | None:
        """Return the select of a field; None if the field is a text field."""
        if options not in self.options or not self._is_select(options):
            return None
        found = self.options[options]
        return {
            "noun": OPTION_LISTS[options].noun,
            "options": found,
            "is_unknown": bool(value) and all(one.value != value for one in found),
        }


def open_plan(plan: Iterable[Mapping[str, Any]]) -> Editor:
    """Return the editor of a valid plan, with shared gates if all steps have the same ones."""
    steps = tuple(
        TypedStep(
            format_values(STEP_FIELDS, step),
            tuple(
                TypedGate(gate["type"], format_values(kinds.get_fields(gate["type"]), gate))
                for gate in step["gates"]
            ),
        )
        for step in plan
    )
    is_shared = all(step.gates == steps[0].gates for step in steps)
    return Editor(steps).share_gates() if is_shared else Editor(steps)


def read_form(data: Mapping[str, str]) -> Editor | None:
    """Return the plan editor with a form's submitted values, or None if it has no plan fields."""
    indexes = sorted({int(match[1]) for name in data if (match := _STEP_FIELD.fullmatch(name))})
    if not indexes:
        return None
    numbers: dict[str, list[int]] = {}
    for name in data:
        if match := _GATE_FIELD.fullmatch(name):
            numbers.setdefault(match[1], []).append(int(match[2]))

    def read_gates(group: str) -> tuple[TypedGate, ...]:
        return tuple(
            TypedGate(type_, _read_fields(data, name, kinds.get_fields(type_)))
            for number in sorted(numbers.get(group, ()))[:MAX_TYPED_LENGTH]
            for name in (f"{group}-gate-{number}",)
            for type_ in (str(data.get(f"{name}-type", ""))[:24],)
        )

    is_shared = data.get(GATES_INPUT) == SHARED
    steps = tuple(
        TypedStep(
            _read_fields(data, f"step-{index}", STEP_FIELDS),
            () if is_shared else read_gates(f"step-{index}"),
        )
        for index in indexes[:MAX_TYPED_LENGTH]
    )
    return Editor(steps, read_gates(SHARED) if is_shared else None)


def _read_fields(data: Mapping[str, str], name: str, fields: Iterable[GateField]) -> dict[str, str]:
    return {
        field.input_name: str(data.get(f"{name}-{field.input_name}", "")).strip()[:MAX_TEXT_LENGTH]
        for field in fields
    }
