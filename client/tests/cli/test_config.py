"""`switchgear config`: the plan that was shown is what is loaded, and nothing without a yes."""

import json

import pytest

from tests.cli.shell import Shell

PLAN = {
    "plan": "d1",
    "changes": [
        {
            "kind": "switch",
            "name": "feature:chat",
            "outcome": "changed",
            "differences": ["owner: – → Core"],
            "edited": "changed by user:kim on 2026-11-20 09:00 UTC",
            "note": "",
            "approval": None,
        }
    ],
    "counts": {"new": 0, "changed": 1, "same": 3, "kept": 0},
    "elsewhere": ["switch feature:old"],
    "remarks": [],
}
SAME = {**PLAN, "changes": [], "counts": {"new": 0, "changed": 0, "same": 4, "kept": 0}}
API = "/api/v1/configuration/"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "switches.yaml").write_text("switches: {feature:chat: {owner: Core}}")
    (tmp_path / "notes.txt").write_text("not sent")
    return tmp_path


def test_diff_prints_the_plan_and_exits_with_11(asking, console, folder):
    console.answer("POST", f"{API}diff", PLAN)

    ran = asking("config", "diff", str(folder))

    assert ran.code == 11
    assert "~ switch feature:chat (changed by user:kim on 2026-11-20 09:00 UTC)" in ran.out
    assert "owner: – → Core" in ran.out
    assert "Plan: 0 new, 1 changed, 3 unchanged." in ran.out
    (_, _, _, body) = console.asked[0]
    assert body["files"] == {"switches.yaml": "switches: {feature:chat: {owner: Core}}"}


def test_diff_without_a_difference_exits_with_0(asking, console, folder):
    console.answer("POST", f"{API}diff", SAME)

    assert asking("config", "diff", str(folder)).code == 0


def test_diff_names_the_first_entries_that_are_in_no_file(asking, console, folder):
    names = [f"switch feature:old-{number}" for number in range(7)]
    console.answer("POST", f"{API}diff", {**SAME, "elsewhere": names})

    ran = asking("config", "diff", str(folder))

    text = " ".join(ran.out.split())
    assert f"In none of the files, unchanged: {', '.join(names[:5])} and 2 more." in text


def test_load_sends_the_digest_of_the_plan_it_showed(asking, console, folder):
    console.answer("POST", f"{API}diff", PLAN)
    console.answer("POST", API, PLAN)

    ran = asking("config", "load", str(folder), "--yes", "--reason", "merge of #12")

    assert ran.code == 0
    assert "Loaded: 0 new, 1 changed, 3 unchanged." in ran.out
    body = console.asked[1][3]
    assert (body["plan"], body["reason"]) == ("d1", "merge of #12")


def test_load_without_a_terminal_needs_yes(asking, console, folder):
    console.answer("POST", f"{API}diff", PLAN)

    ran = asking("config", "load", str(folder))

    assert ran.code == 2
    assert "--yes" in ran.err
    assert len(console.asked) == 1


def test_load_asks_on_a_terminal(asking, console, folder, monkeypatch):
    console.answer("POST", f"{API}diff", PLAN)
    console.answer("POST", API, PLAN)

    class Terminal:
        def __init__(self, said):
            self.said = said

        def isatty(self):
            return True

        def readline(self):
            return self.said

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert asking("config", "load", str(folder)).code == 1
    assert len(console.asked) == 1

    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert asking("config", "load", str(folder)).code == 0


def test_load_without_a_difference_sends_nothing(asking, console, folder):
    console.answer("POST", f"{API}diff", SAME)

    ran = asking("config", "load", str(folder))

    assert ran.code == 0
    assert len(console.asked) == 1


def test_load_whose_rules_wait_for_approval_exits_with_6(asking, console, folder):
    waiting = {**PLAN, "changes": [{**PLAN["changes"][0], "kind": "rule", "approval": 7}]}
    console.answer("POST", f"{API}diff", PLAN)
    console.answer("POST", API, waiting)

    ran = asking("config", "load", str(folder), "--yes")

    assert ran.code == 6
    assert "request 7" in ran.out


def test_outdated_plan_is_reported(asking, console, folder):
    console.answer("POST", f"{API}diff", PLAN)
    refused = {"status": 409, "detail": "The configuration has changed since this plan was made."}
    console.answer("POST", API, (409, refused))

    ran = asking("config", "load", str(folder), "--yes")

    assert ran.code == 1
    assert "has changed since this plan was made" in ran.err


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_folder_without_files_is_a_usage_error(asking, tmp_path, missing):
    (tmp_path / "empty").mkdir()

    assert asking("config", "diff", str(tmp_path / missing)).code == 2


def test_export_writes_files_and_schemas(asking, console, tmp_path):
    console.answer("GET", API, {"files": {"switches.yaml": "switches: {}\n"}})
    console.answer(
        "GET", f"{API}schemas", {"schemas": {"switches.schema.json": {"type": "object"}}}
    )

    ran = asking("config", "export", str(tmp_path / "out"))

    assert ran.code == 0
    assert (tmp_path / "out" / "switches.yaml").read_text() == "switches: {}\n"
    schema = tmp_path / "out" / "schema" / "switches.schema.json"
    assert json.loads(schema.read_text()) == {"type": "object"}


def test_export_with_a_path_as_name_writes_nothing(asking, console, tmp_path):
    console.answer("GET", API, {"files": {"../x.yaml": ""}})
    console.answer("GET", f"{API}schemas", {"schemas": {}})

    assert asking("config", "export", str(tmp_path / "out")).code == 5
    assert not (tmp_path / "x.yaml").exists()


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_real_console_exports_compares_and_loads(shell_of, tmp_path):
    shell: Shell = shell_of("config:read", "config:write", "switches:read", role="admin")
    folder = tmp_path / "config"

    assert shell("config", "export", str(folder)).code == 0
    assert shell("config", "diff", str(folder)).code == 0
    (folder / "switches.yaml").write_text("switches: {feature:chat: {owner: Core}}")
    assert shell("config", "diff", str(folder)).code == 11
    loaded = shell("config", "load", str(folder), "--yes")
    assert loaded.code == 0, loaded
    assert shell("config", "diff", str(folder)).code == 0
