"""Manifests in `deploy/`, parsed for tests."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
RELAYS = DEPLOY / "kubernetes" / "relays"
REGION = DEPLOY / "kubernetes" / "overlays" / "region"
"""The overlay of a region that has relays alone."""
OVERLAYS = sorted(
    path.parent
    for path in DEPLOY.glob("kubernetes/overlays/*/kustomization.yaml")
    if path.parent != REGION
)
"""The overlays of whole installations."""


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def base(kind: str) -> dict[str, dict[str, Any]]:
    """The base's objects of a kind, by name."""
    found = [each for path in BASE.glob("*.yaml") for each in documents(path)]
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def processes() -> dict[str, dict[str, Any]]:
    """The base's workloads that run for as long as the installation, by name."""
    return {**base("Deployment"), **base("StatefulSet")}


def rendered(overlay: Path) -> list[dict[str, Any]]:
    """Return what kubectl would apply; skip the test without kubectl."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on PATH")
    done = subprocess.run(
        ["kubectl", "kustomize", str(overlay)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def container(workload: dict[str, Any]) -> dict[str, Any]:
    (only,) = workload["spec"]["template"]["spec"]["containers"]
    return only
