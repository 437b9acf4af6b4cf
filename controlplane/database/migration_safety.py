"""Checks that migrations only expand the schema, for upgrades without downtime.

During a rolling upgrade the old release runs on the new schema, so a migration may only add what
the old release can ignore. A migration may remove something in a later release than the last one
that uses it, which it names in `last_used_in = "0.2"`. A migration that can't be analyzed
(`RunPython`, `RunSQL`) explains in `expands = "…"` why it is safe.
"""

from collections.abc import Iterator, Sequence

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations import operations as ops
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Model

BASELINE = {
    "core": "0012_holds",
    "switches": "0007_ramps_and_drills",
    "breakers": "0005_alarms_of_outages",
    "slo": "0002_builtin_rules",
}
"""The last unchecked migration of each app; earlier releases never ran in production."""

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
PYTHON_ONLY = {"choices", "help_text", "verbose_name", "default", "blank", "validators"}
OPAQUE = (ops.RunPython, ops.RunSQL)


def find_problems(release: str, growing: set[str]) -> list[str]:
    """Return a sentence for each migration operation that could break a rolling upgrade.

    `release` is this release. `growing` are the models whose tables may be large (`app.Model`).
    """
    loader = MigrationLoader(None)
    problems: list[str] = []
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app in BASELINE and name > BASELINE[app]:
            before = loader.project_state((app, name), at_end=False)
            problems += check_migration(migration, before, release=release, growing=growing)
    return problems


def check_migration(
    migration: Migration, before: ProjectState, *, release: str, growing: set[str]
) -> list[str]:
    """Return the problems of one migration; `before` is the models' state before it."""
    last_used_in = getattr(migration, "last_used_in", None)
    if last_used_in is not None and _version_tuple(last_used_in) < _version_tuple(release):
        return []
    here = f"{migration.app_label}.{migration.name}"
    state, created_models, problems = before.clone(), set[str](), []
    for operation in _flatten(migration.operations):
        if isinstance(operation, ops.CreateModel):
            created_models.add(operation.name_lower)
        why = _find_conflict(operation, state, migration, created_models, growing)
        if why:
            problems.append(f"{here}: {operation.describe()}: {why}")
        operation.state_forwards(migration.app_label, state)
    return problems


def _find_conflict(
    operation: Operation,
    state: ProjectState,
    migration: Migration,
    created_models: set[str],
    growing: set[str],
) -> str:
    """Return why an operation could break the previous release; "" if it can't."""
    if (
        isinstance(operation, HARMLESS)
        or getattr(operation, "model_name_lower", "") in created_models
    ):
        return ""
    if isinstance(operation, OPAQUE):
        return "" if getattr(migration, "expands", "") else "explain in `expands` why it is safe."
    if isinstance(operation, ops.AddField):
        field = operation.field
        if field.null or field.has_db_default() or field.many_to_many:
            return ""
        return (
            "the previous release adds rows without it. Give it a db_default, or make it nullable."
        )
    if isinstance(operation, ops.AlterField):
        model = state.apps.get_model(migration.app_label, operation.model_name)
        return _check_altered_field(model, operation)
    if isinstance(operation, ops.AddIndex):
        table = f"{migration.app_label}.{operation.model_name_lower}"
        if table not in {label.lower() for label in growing}:
            return ""
        return "this table may be large: AddIndexConcurrently, in a migration that is not atomic."
    return (
        "it removes, renames or forbids something that the previous release uses. Do it one release"
        " later."
    )


def _check_altered_field(model: type[Model], operation: ops.AlterField) -> str:
    # Loosening is harmless: allowing null, a longer text or other choices.
    old, new = model._meta.get_field(operation.name), operation.field
    _, _, path, kwargs = old.deconstruct()  # type: ignore[union-attr]
    _, _, new_path, new_kwargs = new.deconstruct()
    keys = kwargs.keys() | new_kwargs.keys()
    changed = {key for key in keys if kwargs.get(key) != new_kwargs.get(key)} - PYTHON_ONLY
    if kwargs.get("max_length", 0) <= new_kwargs.get("max_length", 0):
        changed -= {"max_length"}
    if new_kwargs.get("null"):
        changed -= {"null"}
    if new_kwargs.get("db_default") is not None:
        changed -= {"db_default"}
    if path == new_path and not changed:
        return ""
    return "the previous release writes values that the new column may reject. Add another column."


def _flatten(operations: Sequence[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, ops.SeparateDatabaseAndState):
            yield from _flatten(operation.database_operations)
        else:
            yield operation


def _version_tuple(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
