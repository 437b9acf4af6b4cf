"""The command: its options, reports and exit codes."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ofrep_conformance.cli import main
from ofrep_conformance.registry import CHECKS
from ofrep_conformance.tests.reference_server import MANIFEST, TOKEN, serve

HEADER = ("--header", f"Authorization: {TOKEN}")


def test_right_server_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    with serve() as url:
        code = main([url, *HEADER, "--flag", "dark-mode=true", "--flag", "greeting=hello"])

    out = capsys.readouterr().out
    assert code == 0
    assert " 0 failed, " in out
    assert "FAIL" not in out


@pytest.mark.parametrize("variants", [(), ("key first",)])
def test_server_without_known_flags_conforms(variants: tuple[str, ...]) -> None:
    with serve(*variants) as url:
        assert main([url, *HEADER, "--strict"]) == 0


def test_failed_requirement_exits_with_1_and_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serve("number for boolean") as url:
        code = main([url, *HEADER, "--flag", "dark-mode=true"])

    out = capsys.readouterr().out
    assert code == 1
    assert "single.type" in out
    assert "dark-mode: value is a number instead of a boolean" in out


@pytest.mark.parametrize(("more", "expected"), [((), 0), (("--strict",), 1)])
def test_failed_recommendation_exits_with_1_only_if_strict(
    more: tuple[str, ...], expected: int
) -> None:
    with serve("own reason") as url:
        assert main([url, *HEADER, "--flag", "dark-mode=true", *more]) == expected


def test_flag_that_requires_a_targeting_key_is_named_by_an_option() -> None:
    options = ("--flag", "split=true", "--requires-targeting-key", "split")
    with serve("split without key") as url:
        only = ("--only", "errors.targeting-key-missing")
        assert main([url, *HEADER, *options, *only]) == 1
        assert main([url, *HEADER, *options, "--skip", "errors.targeting-key-missing"]) == 0


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_manifest_of_either_format_is_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"manifest{suffix}"
    toml = f'[headers]\nAuthorization = "{TOKEN}"\n[[flags]]\nkey = "dark-mode"\nvalue = true\n'
    path.write_text(json.dumps(MANIFEST) if suffix == ".json" else toml)
    with serve() as url:
        assert main([url, "--manifest", str(path), "--only", "single.value", "--strict"]) == 0


def test_reports_are_written_as_json_and_junit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "report.xml"
    with serve("null variant") as url:
        main([url, *HEADER, "--flag", "dark-mode=true", "--json", "--junit", str(junit)])

    document = json.loads(capsys.readouterr().out)
    suite = ElementTree.parse(junit).getroot()
    assert document["protocol"] == "0.3.0"
    verdicts = {result["id"]: result["verdict"] for result in document["results"]}
    assert verdicts.keys() == CHECKS.keys()
    failed = {name for name, verdict in verdicts.items() if verdict == "failed"}
    assert failed == {"single.variant", "bulk.entries"}
    assert suite.attrib["tests"] == str(len(CHECKS))
    named = {
        f"{c.attrib['classname']}.{c.attrib['name']}"
        for c in suite
        if c.find("failure") is not None
    }
    assert named == failed


def test_list_names_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    out = capsys.readouterr().out
    assert all(name in out for name in CHECKS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name the server's URL"),
        (["ftp://flags.example"], "is not an http or https URL"),
        (["http://127.0.0.1:9"], "127.0.0.1"),
        (["http://127.0.0.1:9", "--header", "nonsense"], "must be 'NAME: VALUE'"),
        (["http://127.0.0.1:9", "--flag", "dark-mode"], "must be KEY=VALUE"),
        (["http://127.0.0.1:9", "--context", "{"], "is not JSON"),
        (["http://127.0.0.1:9", "--only", "single.nothing"], "Unknown check: single.nothing"),
        (["http://127.0.0.1:9", "--timeout", "0"], "timeout must be above 0"),
        (["http://127.0.0.1:9", "--manifest", "/nowhere.toml"], "/nowhere.toml"),
    ],
)
def test_wrong_arguments_exit_with_2_and_name_the_mistake(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if message == "127.0.0.1":
        message = "ofrep-conformance: POST /ofrep/v1/evaluate/flags: "

    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"flag": []}, "Unknown field in the manifest: flag"),
        ({"flags": [{"key": "a"}]}, "needs its expected value"),
        ({"flags": [{"key": "a", "value": 1, "bulk": 1}]}, "Unknown field in the flag a: bulk"),
        ({"flags": {}}, "flags must be a list"),
        ({"context": []}, "context must be an object"),
        ({"headers": {"X": 1}}, "headers must have strings"),
        ({"timeout": True}, "timeout must be a number"),
        ([], "must be an object"),
    ],
)
def test_invalid_manifest_is_refused_by_field(
    document: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(document))

    assert main(["http://127.0.0.1:9", "--manifest", str(path)]) == 2
    assert message in capsys.readouterr().err
