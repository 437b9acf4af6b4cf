"""The manifests of the examples are valid, and what they run works."""

import os
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from switchgear import Switchgear
from tests.fake_console import TOKEN, console
from tests.service_processes import EXAMPLES

MANIFESTS = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
KUBECTL = """#!/bin/sh
# Stands for the cluster: keeps the file that a ConfigMap is made of.
case "$1" in
  create)
    for word in "$@"; do
      case "$word" in --from-file=*) cp "${word#*=}" "$KEPT" ;; esac
    done ;;
  apply) cat >/dev/null ;;
esac
"""


def documents(path: Path) -> list[dict]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifest_fits_its_schema(path: Path) -> None:
    for document in documents(path):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def run_job(folder: Path, url: str) -> int:
    """Run what the CronJob runs, and return its exit code."""
    [job] = [document for document in documents(MANIFESTS[0]) if document["kind"] == "CronJob"]
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    kubectl = folder / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TMPDIR": str(folder),
        "KEPT": str(folder / "kept.json"),
        "SWITCHGEAR_URL": url,
        "SWITCHGEAR_TOKEN": TOKEN,
    }
    command = [*container["command"], *container["args"]]
    return subprocess.run(command, env=environment, timeout=60, check=False).returncode


def test_pod_starts_by_what_the_job_has_fetched_although_the_console_is_away(
    tmp_path: Path,
) -> None:
    with console() as there:
        there.engage("feature:chat")
        assert run_job(tmp_path, there.url) == 0
        url = there.url

    with Switchgear(url, TOKEN, state_dir=None, bootstrap=tmp_path / "kept.json") as gear:
        assert not gear.allowed(feature="chat")
        assert gear.status().source == "bootstrap"


def test_job_that_cannot_fetch_leaves_the_last_snapshot(tmp_path: Path) -> None:
    with console() as there:
        run_job(tmp_path, there.url)
        before = (tmp_path / "kept.json").read_bytes()
        there.lie = lambda exchange: exchange.reply(500, b"<h1>Server Error</h1>")

        assert run_job(tmp_path, there.url) != 0

    assert (tmp_path / "kept.json").read_bytes() == before
