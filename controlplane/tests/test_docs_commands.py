"""Every command, flag, path and runbook in the documentation exists."""

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import Resolver404, resolve

from controlplane.core.runbooks import library
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.routes import build_routes, find_endpoint

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/runbooks/*.md")])
_COMMAND = re.compile(r"manage\.py ((?:[^`\n|;&#]|\\\n)+)")
_PATH = re.compile(
    r"(?:\$SG|\$SWITCHGEAR_URL|`(?:GET|POST|PUT|PATCH|DELETE) |`)"
    r"(/(?:api|ofrep|health)/[^\s`\"'?|]*)"
)
_INSIDE = re.compile(r"\]\((/[^)\s#?]*)")
# What Django brings: its flags are its own business.
DJANGOS = {"migrate", "check", "shell", "makemigrations"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_command_has_the_name_and_flags_that_are_written(page: Path) -> None:
    wrong = [
        command for command in _commands(page.read_text(encoding="utf-8")) if not _is_there(command)
    ]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_path_of_the_api_is_served(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    paths = {path.rstrip(".,;:)") for path in _PATH.findall(text)}

    assert {path for path in paths if not _is_served(path)} == set()


@pytest.mark.parametrize("slug", [one.slug for one in library.list_runbooks()])
def test_a_link_of_a_runbook_leads_to_a_page(slug: str) -> None:
    runbook = library.find(slug)
    assert runbook is not None

    paths = set(_INSIDE.findall(runbook.body))

    assert {path for path in paths if not _is_served(path)} == set()
    slugs = {path.split("/")[2] for path in paths if path.startswith("/runbooks/")}
    assert {one for one in slugs if one and library.find(one) is None} == set()


def test_what_is_not_there_is_noticed() -> None:
    commands = _commands(
        "manage.py nothing\nmanage.py audit verify --x\nmanage.py audit nothing --x"
    )

    assert [_is_there(words) for words in commands] == [False, False, False]
    assert not _is_served("/api/v1/nothing/")


def test_the_guide_to_the_api_names_paths_and_commands() -> None:
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    recover = (ROOT / "docs" / "recover.md").read_text(encoding="utf-8")

    assert len(set(_PATH.findall(api))) > 30
    assert len(list(_commands(recover))) > 15


def _commands(text: str) -> Iterator[list[str]]:
    """The words after `manage.py`, of each place that names a command."""
    for line in _COMMAND.findall(text.replace("\\\n", " ")):
        try:
            words = shlex.split(line.split("  ")[0].split(" > ")[0])
        except ValueError:
            words = line.split()
        if words and re.fullmatch(r"[a-z_]+", words[0]):
            yield words


def _is_there(words: list[str]) -> bool:
    name, *rest = words
    app = get_commands().get(name)
    if app is None:
        return False
    if name in DJANGOS or not isinstance(app, str) or app.startswith("django."):
        return True
    parser: ArgumentParser = load_command_class(app, name).create_parser("manage.py", name)
    if rest and (chosen := _branch(parser, rest[0])) is not None:
        parser = chosen
    known = {option for action in parser._actions for option in action.option_strings}
    flags = {word.split("=")[0] for word in rest if word.startswith("--")}
    return flags <= known


def _branch(parser: ArgumentParser, word: str) -> ArgumentParser | None:
    """Return the subcommand; an unknown one has no flags."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            if word.startswith("-") or not re.fullmatch(r"[a-z-]+", word):
                return None
            found = action.choices.get(word)
            return found if found is not None else ArgumentParser(add_help=False)
    return None


def _is_served(path: str) -> bool:
    """Return True if Django or the data plane serves the path.

    Words in braces and variables of the shell are placeholders for a value.
    """
    plain = re.sub(r"\{[^}]*\}|\$[A-Z_]+|:[a-z_]+", "1", path)
    plain = plain.replace("…", "").replace("*", "")
    if find_endpoint(build_routes(Plane()), plain) is not None:
        return True
    for candidate in (plain, plain.rstrip("/"), f"{plain.rstrip('/')}/"):
        try:
            resolve(candidate)
        except Resolver404:
            continue
        return True
    return plain in {"/api/v1", "/api/v1/", "/api/v1/dlq", "/api/v1/gates/", "/ofrep/v1/"}
