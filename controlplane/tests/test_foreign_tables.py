"""An app's SQL names only its own tables; others are read through their owner's exports."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).parents[2]
CHECKED = (
    "breakers",
    "slo",
    "switches",
    "controlplane/accounts",
    "controlplane/notify",
    "controlplane/core",
)


def foreign_tables(folder: str) -> re.Pattern[str]:
    own = folder.replace("/", ".") + "."
    models = [model for model in apps.get_models() if not model.__module__.startswith(own)]
    tables = sorted(model._meta.db_table for model in models)
    return re.compile(rf"\b({'|'.join(tables)})\b")


def texts(folder: str) -> Iterator[tuple[str, str]]:
    for path in (ROOT / folder).rglob("*.py"):
        if not {"tests", "migrations"} & set(path.parts):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


@pytest.mark.parametrize("folder", CHECKED)
def test_sql_names_no_foreign_table(folder: str) -> None:
    foreign = foreign_tables(folder)

    found = [(where, name) for where, text in texts(folder) for name in foreign.findall(text)]

    assert found == []


def test_foreign_table_in_sql_would_be_found() -> None:
    assert foreign_tables("slo").findall("SELECT 1 FROM core_instance JOIN slo_slo") == [
        "core_instance"
    ]
