"""Every announced event has a message template, and every template an event."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from controlplane.core.registry import KindRegistry

ROOT = Path(__file__).resolve().parent.parent.parent
APPS = ("controlplane", "switches", "breakers", "slo")
ANNOUNCING = {"announce", "announce_digest", "record_change", "record_transition"}
"""Functions that take the event as a positional argument, too."""
EVENT = re.compile(r"[a-z_]+\.[a-z_]+")


def test_announced_event_has_a_template() -> None:
    announced = {event for tree in sources() for event in announced_events(tree)}

    assert len(announced) > 30
    assert announced - set(MESSAGE_TEMPLATES) == set()


def test_template_is_announced_somewhere() -> None:
    named = {
        node.value
        for tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
    }
    made_of_outcomes = {event for event in MESSAGE_TEMPLATES if event.startswith("trip.")}

    assert set(MESSAGE_TEMPLATES) - named - made_of_outcomes == set()


def test_superseding_event_has_a_template() -> None:
    for template in MESSAGE_TEMPLATES.values():
        assert template.superseded_by <= set(MESSAGE_TEMPLATES)


def test_name_that_is_taken_is_refused() -> None:
    registry = KindRegistry[MessageTemplate]("no_such_module", name=lambda one: one.event)
    registry.register(MessageTemplate("a.b", "x", "title"))

    with pytest.raises(ValueError, match=r"a\.b is registered twice"):
        registry.register(MessageTemplate("a.b", "y", "other"))


def sources() -> Iterator[ast.Module]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "tests" not in path.parts and path.name != "message_templates.py":
                yield ast.parse(path.read_text(encoding="utf-8"))


def announced_events(tree: ast.Module) -> Iterator[str]:
    """Yield events given to an announcing call: literals, and constants of the same module."""
    constants = dict(module_constants(tree))
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or called_name(call) == "register":
            continue
        events = [keyword.value for keyword in call.keywords if keyword.arg == "event"]
        positional = call.args if called_name(call) in ANNOUNCING else []
        for node in (part for value in [*positional, *events] for part in branches(value)):
            found = constants.get(node.id) if isinstance(node, ast.Name) else None
            found = node.value if isinstance(node, ast.Constant) else found
            if isinstance(found, str) and EVENT.fullmatch(found):
                yield found


def module_constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        targets, values = node.targets[0], node.value
        pairs = (
            zip(targets.elts, values.elts, strict=True)
            if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple)
            else [(targets, values)]
        )
        for target, value in pairs:
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                yield target.id, value.value


def called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def branches(value: ast.expr) -> list[ast.expr]:
    """Return the expressions that `a if condition else b` may yield."""
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
