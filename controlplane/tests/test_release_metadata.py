"""License, community files and package metadata: complete, valid, and the same everywhere."""

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from trove_classifiers import classifiers

from controlplane.tests.deployment import DEPLOY, ROOT

GITHUB = ROOT / ".github"
CHECKER = Path(sys.executable).parent / "check-jsonschema"
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the text at https://www.apache.org/licenses/LICENSE-2.0.txt."""
SCHEMAS = [
    ("vendor.github-workflows", "workflows/*.yml"),
    ("vendor.github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml"),
    ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
]


def check(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [str(CHECKER), "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("place", ["LICENSE", "client/LICENSE"])
def test_the_license_is_the_unmodified_apache_license(place):
    assert hashlib.sha256((ROOT / place).read_bytes()).hexdigest() == APACHE_2


@pytest.mark.parametrize("place", ["pyproject.toml", "client/pyproject.toml"])
def test_a_project_names_its_license_authors_and_addresses(place):
    project = tomllib.loads((ROOT / place).read_text())["project"]

    assert project["license"] == "Apache-2.0"
    assert project["authors"] == [{"name": "The Switchgear authors"}]
    for file in [*project["license-files"], project["readme"]]:
        assert ((ROOT / place).parent / file).is_file()
    assert {"Homepage", "Documentation", "Changelog", "Source", "Issues"} <= set(project["urls"])
    assert set(project["classifiers"]) - {"Private :: Do Not Upload"} <= classifiers
    # PEP 639: a license expression replaces these classifiers.
    assert not [each for each in project["classifiers"] if each.startswith("License ::")]


@pytest.mark.parametrize(("schema", "pattern"), SCHEMAS)
def test_a_github_file_fits_its_schema(schema, pattern):
    files = sorted(GITHUB.glob(pattern))

    done = check(schema, *files)

    assert files
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_workflow_that_does_not_fit_is_refused(tmp_path):
    wrong = tmp_path / "ci.yml"
    wrong.write_text((GITHUB / "workflows" / "ci.yml").read_text().replace("runs-on:", "runs_on:"))

    assert check("vendor.github-workflows", wrong).returncode != 0


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda p: p.name)
def test_a_workflow_reads_only_but_for_tags_ends_by_itself_and_pins_its_actions_by_commit(path):
    workflow = yaml.safe_load(path.read_text())

    assert workflow["permissions"] == {"contents": "read"}
    triggers = workflow[True]  # YAML 1.1 reads `on` as a truth value.
    if any("permissions" in job for job in workflow["jobs"].values()):
        # Only a tag, which maintainers push, may write.
        assert set(triggers) <= {"push", "workflow_dispatch"}
        assert set(triggers["push"]) == {"tags"}
    assert all(job["timeout-minutes"] <= 90 for job in workflow["jobs"].values())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for name, _, commit in (step["uses"].partition("@") for step in steps if "uses" in step):
        assert len(commit) == 40, name
        assert set(commit) <= set("0123456789abcdef"), name


def test_the_workflow_runs_what_every_change_must_pass():
    workflow = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())

    commands = [step.get("run") for step in workflow["jobs"]["checks"]["steps"]]
    assert "bash .ci/run" in commands


def test_all_parts_of_the_console_have_one_version():
    chart = yaml.safe_load((DEPLOY / "helm" / "switchgear" / "Chart.yaml").read_text())
    overlay = DEPLOY / "kubernetes" / "overlays" / "production" / "kustomization.yaml"
    (image,) = yaml.safe_load(overlay.read_text())["images"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == chart["version"] == chart["appVersion"] == image["newTag"]


def test_the_readme_names_the_versions_of_the_console_and_the_client():
    console, client = (
        tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]["version"]
        for place in (".", "client")
    )

    stated = "Beta: console {0[0]}.{0[1]}, Python client {1[0]}.{1[1]}."
    text = stated.format(console.split("."), client.split("."))
    assert text in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", sorted(GITHUB.glob("*.md")), ids=lambda path: path.name)
def test_a_link_of_a_community_file_leads_to_a_file(path):
    targets = re.findall(r"\]\((\.\./[^)#]+)", path.read_text())

    assert targets or path.name.startswith("PULL_REQUEST")
    for target in targets:
        assert (path.parent / target).exists(), target
