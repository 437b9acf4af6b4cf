"""The Helm chart renders the objects of the kustomize base, and its options valid ones."""

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from controlplane.tests.deployment import BASE, DEPLOY, container, documents, rendered

CHART = DEPLOY / "helm" / "switchgear"
VERSIONS = ("1.28", "1.31", kubernetes_validate.latest_version())
OPERATORS = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}  # No schemas here.
CHART_LABELS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"}
TOOL_ANNOTATIONS = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.sh/")
IMAGE = "switchgear:" + yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
PRODUCTION = {
    "config": dict(
        line.split("=", 1)
        for line in (DEPLOY / "kubernetes/overlays/production/switchgear.env")
        .read_text()
        .splitlines()
        if line and not line.startswith("#")
    ),
    "image": {"repository": "registry.example/switchgear"},
    "worker": {"autoscaling": {"minReplicas": 2}},
    "ingress": {"enabled": True, "dataplane": {"host": "switchgear-data.example"}},
    "backup": {"enabled": True},
}
EVERYTHING: dict[str, Any] = {
    **PRODUCTION,
    "monitoring": {"enabled": True, "rules": {"consoleUrl": "https://console.example/"}},
    "imagePullSecrets": [{"name": "registry"}],
    "extraEnv": [{"name": "TIME_ZONE", "value": "UTC"}],
    "dataplane": {"persistence": {"storageClass": "fast"}, "nodeSelector": {"disk": "ssd"}},
    "networkPolicy": {"egress": {"extraOutbound": [{"ports": [{"port": 8443}]}]}},
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "{{ .Release.Name }}-more"},
        }
    ],
}
MINIMAL: dict[str, Any] = {
    "web": {"autoscaling": {"enabled": False}},
    "worker": {"autoscaling": {"enabled": False}, "disruptionBudget": False},
    "dataplane": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "serviceAccount": {"create": False, "name": "theirs"},
    "migrate": {"enabled": False},
}

REGION = {
    "relay": {"enabled": True, "region": "eu-west"},
    "config": {
        "ENVIRONMENT_NAME": "production",
        "SWITCHGEAR_UPSTREAM": "https://switchgear-data.example",
        "PUBLIC_URL": "https://switchgear.example",
    },
    "image": {"repository": "registry.example/switchgear"},
}

Document = dict[str, Any]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """Run the pinned Helm, without the user's settings; skips the tests if it can't be had."""
    script = DEPLOY / "helm" / "fetch_helm.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(done.stderr.strip())
    program, home = done.stdout.strip(), str(tmp_path_factory.mktemp("home"))

    def run(*arguments: str) -> Done:
        return subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=60, env={"HOME": home}
        )

    return run


def render(helm: Callable[..., Done], folder: Path, values: Document) -> list[Document]:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    arguments = ("template", "switchgear", str(CHART), "--values", str(file))
    done = helm(*arguments, "--namespace", "switchgear")
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def by_name(found: list[Document]) -> dict[tuple[str, str], Document]:
    """Return the objects by kind and name, without what differs on purpose."""
    return {(each["kind"], each["metadata"]["name"]): strip_tool_metadata(each) for each in found}


def strip_tool_metadata(document: Document) -> Document:
    """Return the object without the labels and annotations that only one tool needs."""
    found = copy.deepcopy(document)
    pod = found.get("spec", {}).get("template", {})
    for each in [found, *([pod] if pod else [])]:
        metadata = each.get("metadata", {})
        metadata.pop("namespace", None)
        for field in ("labels", "annotations"):
            kept = {
                key: value
                for key, value in (metadata.pop(field, None) or {}).items()
                if key not in CHART_LABELS
                and key != "checksum/config"
                and not key.startswith(TOOL_ANNOTATIONS)
            }
            if kept:
                metadata[field] = kept
    return found


def as_hook(migration: Document) -> Document:
    """Return the base's migration as the chart has it: it runs before the account and the map."""
    found = copy.deepcopy(migration)
    del found["spec"]["template"]["spec"]["serviceAccountName"]
    sources = container(found)["envFrom"]
    container(found)["envFrom"] = [source for source in sources if "configMapRef" not in source]
    return found


def test_the_default_values_give_the_objects_of_the_base(helm, tmp_path):
    ours = by_name(rendered(BASE))
    for workload in ours.values():
        if "template" in workload.get("spec", {}):
            container(workload)["image"] = IMAGE
    ours["Job", "migrate"] = as_hook(ours["Job", "migrate"])

    found = by_name(render(helm, tmp_path, {}))

    # An overlay makes the map of the base.
    (only,) = found.pop(("ConfigMap", "switchgear"))["data"].items()
    assert only in PRODUCTION["config"].items()
    assert found.keys() == ours.keys()
    for key, document in ours.items():
        assert found[key] == document, key


def test_values_like_the_production_overlay_give_its_objects(helm, tmp_path):
    overlay = rendered(DEPLOY / "kubernetes" / "overlays" / "production")
    ours = by_name([each for each in overlay if each["kind"] not in {"Namespace", "ConfigMap"}])
    (settings,) = (each for each in overlay if each["kind"] == "ConfigMap")

    found = by_name(render(helm, tmp_path, PRODUCTION))

    assert found.pop(("ConfigMap", "switchgear"))["data"] == settings["data"]
    assert found.keys() == ours.keys()
    for key in ours:
        if key[0] in {"Ingress", "HorizontalPodAutoscaler", "PersistentVolumeClaim"}:
            assert found[key]["spec"] == ours[key]["spec"], key
        if key[0] == "Ingress":
            assert found[key]["metadata"]["annotations"] == ours[key]["metadata"]["annotations"]
    job, ours_job = (each["CronJob", "backup"]["spec"]["jobTemplate"] for each in (found, ours))
    (source, *_) = container(ours_job)["envFrom"]
    source["configMapRef"]["name"] = "switchgear"  # kustomize adds a hash.
    assert job == ours_job


def test_values_of_a_region_give_the_objects_of_its_overlay(helm, tmp_path):
    overlay = rendered(DEPLOY / "kubernetes" / "overlays" / "region")
    ours = by_name([each for each in overlay if each["kind"] not in {"Namespace", "ConfigMap"}])
    (settings,) = (each for each in overlay if each["kind"] == "ConfigMap")
    only = container(ours["StatefulSet", "relay"])
    only["envFrom"][0]["configMapRef"]["name"] = "switchgear"  # kustomize adds a hash.
    only["env"][0]["valueFrom"]["configMapKeyRef"]["name"] = "switchgear"

    found = by_name(render(helm, tmp_path, REGION))

    assert found.pop(("ConfigMap", "switchgear"))["data"] == settings["data"]
    assert found.keys() == ours.keys()
    for key, document in ours.items():
        assert found[key] == document, key


def test_a_region_needs_a_name(helm):
    done = helm("template", "switchgear", str(CHART), "--set", "relay.enabled=true")

    assert done.returncode != 0
    assert "relay.region" in done.stderr


def test_a_region_may_have_an_ingress_and_monitors(helm, tmp_path):
    options = {
        **REGION,
        "monitoring": {"enabled": True},
        "ingress": {"enabled": True, "dataplane": {"host": "eu-west.example"}},
        "extraEnv": [{"name": "TIME_ZONE", "value": "UTC"}],
    }

    found = {
        (each["kind"], each["metadata"]["name"]): each for each in render(helm, tmp_path, options)
    }

    extra = {key for key in found if key[0] in {*OPERATORS, "Ingress"}}
    assert extra == {("Ingress", "switchgear-dataplane"), ("ServiceMonitor", "switchgear-relay")}
    names = [each["name"] for each in container(found["StatefulSet", "relay"])["env"]]
    assert names == ["REGION", "POD_NAME", "PLANE_NAME", "TIME_ZONE"]


def test_the_migration_runs_before_each_release_and_needs_nothing_that_the_chart_makes(
    helm, tmp_path
):
    found = render(helm, tmp_path, PRODUCTION)
    (job,) = (each for each in found if each["kind"] == "Job")
    hooks = [each for each in found if "helm.sh/hook" in each["metadata"].get("annotations", {})]

    assert hooks == [job]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    variables = {each["name"]: each["value"] for each in container(job)["env"]}
    # The secret's has the password.
    assert variables == {k: v for k, v in PRODUCTION["config"].items() if k != "DATABASE_OWNER_URL"}
    assert "serviceAccountName" not in job["spec"]["template"]["spec"]


def test_monitoring_gives_the_objects_of_the_component_and_the_rules(helm, tmp_path):
    found = render(helm, tmp_path, EVERYTHING)
    ours = documents(DEPLOY / "kubernetes" / "monitoring" / "monitors.yaml")

    monitors = {each["metadata"]["name"]: each for each in found if each["kind"] in OPERATORS}
    for each in ours:
        assert monitors[each["metadata"]["name"]]["spec"] == each["spec"]
    text = (DEPLOY / "prometheus" / "rules.yaml").read_text()
    rules = yaml.safe_load(text.replace("https://switchgear.example", "https://console.example"))
    assert monitors["switchgear"]["spec"] == rules


@pytest.mark.parametrize(
    "values",
    [{}, EVERYTHING, MINIMAL, REGION],
    ids=["default", "everything", "minimal", "region"],
)
def test_rendered_objects_fit_the_schemas_of_three_kubernetes_versions(helm, tmp_path, values):
    found = render(helm, tmp_path, values)

    for document in found:
        for version in VERSIONS if document["kind"] not in OPERATORS else ():
            kubernetes_validate.validate(document, version, strict=True)


def test_options_reach_every_pod_and_minimal_values_leave_parts_out(helm, tmp_path):
    pods = [
        each["spec"].get("jobTemplate", each)["spec"]["template"]["spec"]
        for each in render(helm, tmp_path, EVERYTHING)
        if each["kind"] in {"Deployment", "StatefulSet", "Job", "CronJob"}
    ]
    minimal = {(each["kind"], each["metadata"]["name"]) for each in render(helm, tmp_path, MINIMAL)}

    assert len(pods) == 7
    for pod in pods:
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert {"name": "TIME_ZONE", "value": "UTC"} in pod["containers"][0]["env"]
    assert not {kind for kind, _ in minimal} & {
        *("HorizontalPodAutoscaler", "NetworkPolicy", "ServiceAccount", "Job", "StatefulSet")
    }
    assert {each for each in minimal if each[0] == "PodDisruptionBudget"} == {
        ("PodDisruptionBudget", "web")
    }


def test_the_chart_has_no_finding(helm):
    done = helm("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("web.replicaz=3", "replicaz"),
        ("image.tag=latest", "tag"),
        ("image.digest=sha256:abc", "digest"),
        ("config.SECRET_KEY=x", "SECRET_KEY"),
        ("config.SNAPSHOT_SIGNING_KEY=x", "SNAPSHOT_SIGNING_KEY"),
        ("networkPolicy.egress.databasePorts={0}", "databasePorts"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(helm, option, part):
    done = helm("template", "switchgear", str(CHART), "--set", option)

    assert done.returncode != 0
    assert part in done.stderr
