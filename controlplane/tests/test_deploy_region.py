"""A region without a database: relays that are run as data planes are, from a token and a key."""

import copy
from typing import Any

import kubernetes_validate
import yaml

from controlplane.core.signatures import SigningKey
from controlplane.environment.relay import read_relay_environment
from controlplane.processes.management.commands.serve import PORT
from controlplane.processes.relay_command import RelayCommand, is_relay_command
from controlplane.tests.deployment import (
    DEPLOY,
    REGION,
    RELAYS,
    ROOT,
    base,
    container,
    documents,
    rendered,
)

VERSIONS = ("1.28", "1.31", kubernetes_validate.latest_version())
OF_THE_CONSOLE = {"DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "SECRET_KEY"}

Document = dict[str, Any]


def load_relays(kind: str) -> dict[str, Document]:
    """Return the objects of a kind of the relays' base, by name."""
    found = [each for path in RELAYS.glob("*.yaml") for each in documents(path)]
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def load_settings() -> dict[str, str]:
    lines = (REGION / "switchgear.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_region_renders_to_valid_objects_and_selects_its_own_pods():
    found = rendered(REGION)
    (workload,) = (each for each in found if each["kind"] == "StatefulSet")
    labels = workload["spec"]["template"]["metadata"]["labels"].items()

    for document in found:
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)
    assert {each["kind"] for each in found} == {
        *("Namespace", "ServiceAccount", "ConfigMap", "Service", "StatefulSet"),
        *("PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy"),
    }
    selectors = [
        each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
        for each in found
        if each["kind"] in {"Service", "PodDisruptionBudget"}
    ] + [
        each["spec"]["podSelector"]["matchLabels"]
        for each in found
        if each["kind"] == "NetworkPolicy"
    ]
    assert all(selector.items() <= labels for selector in selectors)
    assert ":" in container(workload)["image"]


def test_relay_runs_as_a_data_plane_does():
    relay, plane = (
        copy.deepcopy(each)
        for each in (load_relays("StatefulSet")["relay"], base("StatefulSet")["dataplane"])
    )
    (only,), (other,) = (each["spec"]["template"]["spec"]["containers"] for each in (relay, plane))

    arguments = only.pop("args")
    options = RelayCommand().create_parser("manage.py", arguments[0]).parse_args(arguments[1:])
    assert is_relay_command(["manage.py", *arguments], load_settings())
    assert (options.host, options.port) == ("0.0.0.0", PORT)
    del only["env"], only["name"], other["args"], other["name"]
    assert only == other
    assert relay["spec"].pop("persistentVolumeClaimRetentionPolicy") == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",  # It has reports that nobody else has.
    }
    del plane["spec"]["persistentVolumeClaimRetentionPolicy"], plane["spec"]["replicas"]
    text = yaml.safe_dump(plane["spec"]).replace("component: dataplane", "component: relay")
    assert relay["spec"] == yaml.safe_load(text)


def test_settings_and_secret_are_all_that_a_relay_needs(tmp_path):
    key = SigningKey.generate().public
    secret = {"SWITCHGEAR_TOKEN": "sg_1", "SWITCHGEAR_PUBLIC_KEY": str(key)}
    (command,) = (
        line
        for line in (ROOT / "docs" / "deploy.md").read_text().split("\n\n")
        if "secret generic switchgear --from-literal=SWITCHGEAR_TOKEN" in line
    )
    variables = {**load_settings(), **secret, "SWITCHGEAR_DATA_DIR": str(tmp_path)}

    found = read_relay_environment({**variables, "PLANE_NAME": "eu-west-relay-0"})

    assert all(f"--from-literal={name}=" in command for name in secret)
    assert found.upstreams == (load_settings()["SWITCHGEAR_UPSTREAM"],)
    assert not OF_THE_CONSOLE & variables.keys()


def test_names_of_relays_differ_between_regions():
    (workload,) = load_relays("StatefulSet").values()
    variables = {each["name"]: each for each in container(workload)["env"]}

    source = variables["REGION"]["valueFrom"]["configMapKeyRef"]
    assert source["key"] in load_settings()
    assert list(variables) == ["REGION", "POD_NAME", "PLANE_NAME"]  # Only earlier ones expand.
    assert variables["PLANE_NAME"]["value"] == "$(REGION)-$(POD_NAME)"


def test_relays_keep_one_pod_and_scale_by_cpu():
    (budget,) = load_relays("PodDisruptionBudget").values()
    (scaler,) = load_relays("HorizontalPodAutoscaler").values()
    (workload,) = load_relays("StatefulSet").values()

    assert budget["spec"]["minAvailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 8)
    assert scaler["spec"]["scaleTargetRef"]["kind"] == "StatefulSet"
    assert "replicas" not in workload["spec"]


def test_relays_connect_to_names_and_to_the_upstream_alone():
    policies = load_relays("NetworkPolicy")

    assert "egress" not in policies["nobody-else"]["spec"]
    (names, upstream) = policies["upstream"]["spec"]["egress"]
    assert {each["port"] for each in names["ports"]} == {53}
    assert {each["port"] for each in upstream["ports"]} == {443}
    assert "169.254.0.0/16" in upstream["to"][0]["ipBlock"]["except"]
    assert (
        policies["relay"]["spec"]["ingress"]
        == base("NetworkPolicy")["dataplane"]["spec"]["ingress"]
    )


def test_services_have_the_names_that_they_have_beside_the_console():
    found, beside = load_relays("Service"), base("Service")

    assert found.keys() == {"switchgear-dataplane", "switchgear-planes"}
    for name, service in found.items():
        for each in (service, beside[name]):
            del each["spec"]["selector"]
        assert service["spec"] == beside[name]["spec"]


def test_relays_of_a_region_find_each_other_and_may_connect():
    (rule,) = load_relays("NetworkPolicy")["planes"]["spec"]["egress"]

    host, port = load_settings()["DATA_PLANES"].removeprefix("http://").split(":")
    assert [each["port"] for each in load_relays("Service")[host]["spec"]["ports"]] == [int(port)]
    assert [each["port"] for each in rule["ports"]] == [PORT]


def test_ingress_of_data_planes_accepts_batches_of_relays():
    ingresses = documents(DEPLOY / "kubernetes" / "overlays" / "production" / "ingress.yaml")
    annotations = {each["metadata"]["name"]: each["metadata"]["annotations"] for each in ingresses}

    found = annotations["switchgear-dataplane"]
    assert found["nginx.ingress.kubernetes.io/proxy-body-size"] == "8m"
    assert found["nginx.ingress.kubernetes.io/proxy-buffering"] == "off"


def test_nothing_lies_beside_what_is_applied():
    listed = set(yaml.safe_load((RELAYS / "kustomization.yaml").read_text())["resources"])

    assert listed == {path.name for path in RELAYS.glob("*.yaml")} - {"kustomization.yaml"}
