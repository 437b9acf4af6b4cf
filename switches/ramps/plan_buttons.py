"""Buttons of the plan editor: they add and remove steps and gates, and share or split gates."""

import re
from collections.abc import Mapping
from dataclasses import replace

from controlplane.core.gates.fields import format_values, parse_number
from controlplane.core.gates.kinds import GATE_KINDS

from .plan_editor import NEW, SHARED, Editor, TypedGate, TypedStep

CHECK, ADD_STEP = "check", "add-step"
SHARE_GATES, SPLIT_GATES = "share-gates", "split-gates"

_BUTTON = re.compile(r"(remove-step|add-gate|remove-gate)-([0-9]{1,2}|all)(?:-([0-9]{1,2}))?")


def press_button(editor: Editor, button: str, data: Mapping[str, str]) -> Editor:
    """Return the plan editor changed by an add or remove button, unchanged by an unknown one."""
    if button == ADD_STEP:
        return _add_step(editor)
    if button in (SHARE_GATES, SPLIT_GATES):
        return editor.share_gates() if button == SHARE_GATES else editor.split_gates()
    match = _BUTTON.fullmatch(button)
    if match is None:
        return editor
    action, group, number = match[1], match[2], int(match[3] or 0)
    if group == SHARED:
        gates = editor.shared_gates
        return editor if gates is None else _change_gates(editor, None, action, number, data)
    index = int(group)
    if index >= len(editor.steps):
        return editor
    if action == "remove-step":
        left = editor.steps[:index] + editor.steps[index + 1 :]
        return replace(editor, steps=left) if left else editor
    if editor.shared_gates is not None:
        return editor
    return _change_gates(editor, index, action, number, data)


def _change_gates(
    editor: Editor, index: int | None, action: str, number: int, data: Mapping[str, str]
) -> Editor:
    """Add a gate, or remove the gate `number`, of the step `index`; None means of every step."""
    name = SHARED if index is None else f"step-{index}"
    gates = (editor.shared_gates or ()) if index is None else editor.steps[index].gates
    focus = ""
    if action == "add-gate":
        kind = GATE_KINDS.get(data.get(f"{name}-{NEW}", ""))
        if kind is None:
            return editor
        defaults = {field.name: field.default for field in kind.fields}
        focus = f"{name}-gate-{len(gates)}-{kind.fields[0].input_name}"
        gates = (*gates, TypedGate(kind.name, format_values(kind.fields, defaults)))
    else:
        gates = gates[:number] + gates[number + 1 :]
    if index is None:
        return replace(editor, shared_gates=gates, errors={}, focus=focus)
    step = replace(editor.steps[index], gates=gates)
    steps = (*editor.steps[:index], step, *editor.steps[index + 1 :])
    return replace(editor, steps=steps, errors={}, focus=focus)


def _add_step(editor: Editor) -> Editor:
    before, last = editor.steps[:-1], editor.steps[-1]
    low = parse_number(before[-1].values.get("percent", "")) if before else 0
    high = parse_number(last.values.get("percent", ""))
    half = ""
    if isinstance(low, int | float) and isinstance(high, int | float):
        total = low + high
        half = f"{total // 2 if total >= 4 else round(total / 2, 2):g}"
    values = {**(before[-1] if before else last).values, "percent": half}
    focus = f"step-{len(before)}-percent"
    steps = (*before, TypedStep(values), last)
    return replace(editor, steps=steps, errors={}, focus=focus)
