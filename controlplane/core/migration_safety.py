"""Classify migrations as expanding or contracting, for upgrades without downtime.

While processes are replaced one by one, the old release runs on the new schema. So a migration may
only add what the old release can ignore. A migration that removes something contracts: it belongs
in a later release than the last one to use it, which it names in `last_used_in = "0.2"`. One that
can't be analyzed (`RunPython`, `RunSQL`) explains in `expands = "…"` why it is safe.
"""

from collections.abc import Iterator, Sequence

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations import operations as ops
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field, Model

BASELINE = {
    "core": "0012_holds",
    "switches": "0007_ramps_and_drills",
    "breakers": "0005_alarms_of_outages",
    "slo": "0002_builtin_rules",
}
"""The last unchecked migration of each app: no release has run before it."""

HARMLESS = (
    ops.CreateModel,
    ops.RemoveIndex,
    ops.RemoveConstraint,
    ops.AlterModelOptions,
    ops.AlterModelManagers,
    ops.AlterModelTableComment,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
OF_PYTHON = {"choices", "help_text", "verbose_name", "default", "blank", "validators"}
OPAQUE = (ops.RunPython, ops.RunSQL)


def problems(release: str, growing: set[str]) -> list[str]:
    """Return a sentence for each migration that would break a rolling upgrade to `release`.

    `growing` are the models (`app.Model`) whose tables may be large.
    """
    loader = MigrationLoader(None)
    found: list[str] = []
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app in BASELINE and name > BASELINE[app]:
            before = loader.project_state((app, name), at_end=False)
            found += judge(migration, before, release=release, growing=growing)
    return found


def judge(
    migration: Migration, before: ProjectState, *, release: str, growing: set[str]
) -> list[str]:
    """Return the findings for one migration, on the state that it starts from."""
    last_used_in = getattr(migration, "last_used_in", None)
    if last_used_in is not None and _number(last_used_in) < _number(release):
        return []
    here = f"{migration.app_label}.{migration.name}"
    state, made, said = before.clone(), set[str](), []
    for operation in _flat(migration.operations):
        if isinstance(operation, ops.CreateModel):
            made.add(operation.name_lower)
        why = _contracts(operation, state, migration, made, growing)
        if why:
            said.append(f"{here}: {operation.describe()}: {why}")
        operation.state_forwards(migration.app_label, state)
    return said


def _contracts(
    operation: Operation,
    state: ProjectState,
    migration: Migration,
    made: set[str],
    growing: set[str],
) -> str:
    """Return the reason an operation breaks the previous release; empty if it doesn't."""
    if isinstance(operation, HARMLESS) or getattr(operation, "model_name_lower", "") in made:
        return ""
    if isinstance(operation, OPAQUE):
        return "" if getattr(migration, "expands", "") else "say in `expands` why it does no harm."
    if isinstance(operation, ops.AddField):
        return _added(operation.field)
    if isinstance(operation, ops.AlterField):
        model = state.apps.get_model(migration.app_label, operation.model_name)
        return _altered(model, operation)
    if isinstance(operation, ops.AddIndex):
        return _indexed(operation, migration.app_label, growing)
    return "it takes away, renames or forbids what the release before uses. Do it a release later."


def _added(field: "Field[object, object]") -> str:
    if field.null or field.has_db_default() or field.many_to_many:
        return ""
    return "the release before adds rows without it. Give it a db_default, or let it be null."


def _altered(model: type[Model], operation: ops.AlterField) -> str:
    """Loosening is harmless: null where it was not, a longer text, other choices."""
    old, new = model._meta.get_field(operation.name), operation.field
    _, _, path, kwargs = old.deconstruct()  # type: ignore[union-attr]
    _, _, new_path, new_kwargs = new.deconstruct()
    keys = kwargs.keys() | new_kwargs.keys()
    changed = {key for key in keys if kwargs.get(key) != new_kwargs.get(key)} - OF_PYTHON
    if kwargs.get("max_length", 0) <= new_kwargs.get("max_length", 0):
        changed -= {"max_length"}
    if new_kwargs.get("null"):
        changed -= {"null"}
    if new_kwargs.get("db_default") is not None:
        changed -= {"db_default"}
    if path == new_path and not changed:
        return ""
    return "the release before writes what the new column may not take. Add another column."


def _indexed(operation: ops.AddIndex, app: str, growing: set[str]) -> str:
    names = {label.lower() for label in growing}
    if f"{app}.{operation.model_name_lower}" not in names:
        return ""
    return "this table may be large: AddIndexConcurrently, in a migration that is not atomic."


def _flat(given: Sequence[Operation]) -> Iterator[Operation]:
    for operation in given:
        if isinstance(operation, ops.SeparateDatabaseAndState):
            yield from _flat(operation.database_operations)
        else:
            yield operation


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
