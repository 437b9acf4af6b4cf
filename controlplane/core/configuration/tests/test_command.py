"""`manage.py config`: export, diff with an exit code, and schemas."""

import io

import pytest
import yaml
from django.core.management import call_command

from controlplane.core.configuration.readers import list_files
from switches.models import Switch

from .whole_installation import TEXTS

pytestmark = pytest.mark.django_db


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("config", *map(str, arguments), stdout=out, stderr=err)
    except SystemExit as ended:
        return ended.code, out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_export_writes_all_files_and_their_schemas(tmp_path):
    code, said, _ = run("export", tmp_path / "new")

    assert code == 0
    assert {path.name for path in (tmp_path / "new").glob("*.yaml")} == set(list_files())
    schemas = (tmp_path / "new" / "schema").glob("*.schema.json")
    assert len(list(schemas)) == len(list_files())
    assert "Secrets are not exported" in said


def test_export_to_stdout_is_a_stream_of_documents():
    _, said, _ = run("export", "-")

    assert len(list(yaml.safe_load_all(said))) == len(list_files())


def test_diff_of_an_export_is_empty_and_of_a_change_is_not(tmp_path):
    run("export", tmp_path)
    assert run("diff", tmp_path)[0] == 0

    (tmp_path / "switches.yaml").write_text(TEXTS["switches.yaml"])
    code, said, _ = run("diff", tmp_path)

    assert code == 1
    assert "+ switch feature:nl2sql" in said
    assert not Switch.objects.exists()


def test_load_says_that_a_rule_waits_for_approval(tmp_path):
    (tmp_path / "rules.yaml").write_text(TEXTS["rules.yaml"])

    _, said, _ = run("load", tmp_path)

    assert "+ rule At most two features: needs a second person's approval (approval " in said


def test_export_to_a_file_fails_with_a_message(tmp_path):
    (tmp_path / "taken").write_text("")

    code, _, said = run("export", tmp_path / "taken")

    assert code == 1
    assert "can't be written" in said
