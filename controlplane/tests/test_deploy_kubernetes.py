"""The manifests: schema validity, timings and sizes."""

import kubernetes_validate
import pytest
import yaml

from controlplane.processes.management.commands.serve import PORT, Command
from controlplane.tests.deployment import (
    BASE,
    DEPLOY,
    OVERLAYS,
    ROOT,
    base,
    container,
    documents,
    processes,
    rendered,
)

OPERATORS = {"ServiceMonitor", "PodMonitor"}  # Of the Prometheus operator: no schema here.
VERSIONS = ("1.28", "1.31", kubernetes_validate.latest_version())
MANIFESTS = sorted(
    path
    for path in [*DEPLOY.glob("kubernetes/**/*.yaml"), *DEPLOY.glob("services/*.yaml")]
    if path.name not in {"kustomization.yaml", "two-workers.yaml", "monitors.yaml"}
)
#        role: (startup, live, ready) as (delay, period, failures)
STARTUP = (10, 5, 12)
TIMINGS = {
    "web": (STARTUP, (0, 10, 3), (0, 10, 3)),
    "worker": (STARTUP, (0, 15, 3), (0, 15, 3)),
    "beat": (STARTUP, (0, 15, 3), (0, 15, 3)),
    "watchdog": (STARTUP, (0, 15, 3), (0, 15, 3)),
    "dataplane": ((0, 5, 12), (0, 10, 3), (0, 5, 3)),
}
SIZES = {
    "web": ({"cpu": "500m", "memory": "1Gi"}, {"cpu": "2000m", "memory": "4Gi"}),
    "worker": ({"cpu": "250m", "memory": "512Mi"}, {"cpu": "1000m", "memory": "2Gi"}),
}


def valid(document):
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_manifest_fits_its_schema(path):
    found = documents(path)

    assert found
    for document in found:
        valid(document)


def test_the_check_refuses_what_does_not_fit():
    wrong = {**base("Deployment")["web"], "replicaz": 1}

    with pytest.raises(kubernetes_validate.ValidationError):
        valid(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_renders_to_what_fits_and_selects_what_it_labels(overlay):
    found = rendered(overlay)

    for document in found:
        valid(document)
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in found
        if each["kind"] in {"Deployment", "StatefulSet", "Job"}
    ]
    for service in (each for each in found if each["kind"] in {"Service", "PodDisruptionBudget"}):
        selector = service["spec"]["selector"]
        wanted = selector.get("matchLabels", selector).items()
        assert [each for each in labels if wanted <= each.items()], service["metadata"]["name"]


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_names_every_secret_and_map_it_does_not_make(overlay):
    found = rendered(overlay)

    made = {each["metadata"]["name"] for each in found if each["kind"] in {"ConfigMap", "Secret"}}
    wanted = {
        next(iter(source.values()))["name"]
        for each in found
        if each["kind"] in {"Deployment", "StatefulSet", "Job"}
        for source in container(each).get("envFrom", [])
    }
    guide = (ROOT / "docs" / "deploy.md").read_text()
    for name in wanted - made:
        assert f"secret generic {name} " in guide, name


def test_probes_have_the_timings_asked_for():
    for name, workload in processes().items():
        only = container(workload)
        found = tuple(
            (
                only[kind].get("initialDelaySeconds", 0),
                only[kind]["periodSeconds"],
                only[kind]["failureThreshold"],
            )
            for kind in ("startupProbe", "livenessProbe", "readinessProbe")
        )
        assert found == TIMINGS[name], name


def test_liveness_never_asks_what_looks_outside():
    for workload in processes().values():
        assert container(workload)["livenessProbe"]["httpGet"]["path"] == "/health/live"


def test_each_container_is_a_process_that_serves_on_the_port_it_names():
    workloads = processes()

    assert set(workloads) == set(TIMINGS)
    for name, workload in workloads.items():
        only = container(workload)
        command, *arguments = only["args"]
        options = Command().create_parser("manage.py", command).parse_args(arguments)
        assert (command, options.role) == ("serve", name)
        port = options.port if hasattr(options, "port") else options.health_port
        assert [each["containerPort"] for each in only["ports"]] == [port] == [PORT]


def test_sizes_disruption_and_scaling_are_as_asked():
    workloads, scaling = processes(), base("HorizontalPodAutoscaler")
    for name, (requests, limits) in SIZES.items():
        assert container(workloads[name])["resources"] == {"requests": requests, "limits": limits}
    budgets = base("PodDisruptionBudget")
    assert {name: each["spec"]["minAvailable"] for name, each in budgets.items()} == {
        "web": 1,
        "worker": 1,
        "dataplane": 1,
    }
    # An outage makes pods unready; it must not hold up whoever drains nodes.
    policies = {each["spec"]["unhealthyPodEvictionPolicy"] for each in budgets.values()}
    assert policies == {"AlwaysAllow"}
    bounds = {n: (s["spec"]["minReplicas"], s["spec"]["maxReplicas"]) for n, s in scaling.items()}
    assert bounds == {"web": (2, 8), "worker": (1, 4)}
    for each in scaling.values():
        assert each["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300
        # Who is scaled must not be told a number by both.
        assert "replicas" not in workloads[each["metadata"]["name"]]["spec"]
    (cpu,) = scaling["web"]["spec"]["metrics"]
    assert cpu["resource"]["target"]["averageUtilization"] == 70
    depth = scaling["worker"]["spec"]["metrics"][0]["external"]
    assert depth["metric"]["name"] == "switchgear_worker_queue_depth"
    assert depth["target"] == {"type": "AverageValue", "averageValue": "500"}


def test_every_pod_is_restricted_and_holds_no_token():
    for workload in [*processes().values(), *base("Job").values()]:
        pod, only = workload["spec"]["template"]["spec"], container(workload)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_an_image_has_a_tag_and_is_not_fetched_if_the_node_has_it(overlay):
    ours = [container(each) for each in rendered(overlay) if each["kind"] in {"Deployment", "Job"}]
    ours = [each for each in ours if "switchgear" in each["image"]]

    assert ours
    for each in ours:
        assert ":" in each["image"]
        assert not each["image"].endswith(":latest")
        assert each["imagePullPolicy"] == "IfNotPresent"


def test_the_copy_of_a_data_plane_outlives_its_pod():
    (workload,) = base("StatefulSet").values()
    (claim,) = workload["spec"]["volumeClaimTemplates"]

    mounts = {each["name"]: each["mountPath"] for each in container(workload)["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == "/data"
    assert "data" not in [each["name"] for each in workload["spec"]["template"]["spec"]["volumes"]]
    # A second mount must not open the copy to the group: it would be refused.
    security = workload["spec"]["template"]["spec"]["securityContext"]
    assert security["fsGroupChangePolicy"] == "OnRootMismatch"
    # One that waits for its first copy holds up no other.
    assert workload["spec"]["podManagementPolicy"] == "Parallel"


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_data_planes_find_each_other_ready_or_not_and_may_connect(overlay):
    lines = (overlay / "switchgear.env").read_text().splitlines()
    (url,) = [line.partition("=")[2] for line in lines if line.startswith("DATA_PLANES=")]
    host, port = url.removeprefix("http://").split(":")
    (services,) = [
        each["spec"]
        for each in documents(BASE / "dataplane.yaml")
        if (each["kind"], each["metadata"]["name"]) == ("Service", host)
    ]

    assert services["clusterIP"] == "None"  # The name resolves to the pods.
    assert services["publishNotReadyAddresses"] is True
    assert services["selector"] == {"app.kubernetes.io/component": "dataplane"}
    assert [each["port"] for each in services["ports"]] == [int(port)] == [PORT]
    policy = base("NetworkPolicy")["planes"]["spec"]
    assert policy["podSelector"]["matchExpressions"][0]["values"] == ["web", "dataplane"]
    (rule,) = policy["egress"]
    assert [each["port"] for each in rule["ports"]] == [PORT]
    assert rule["to"][0]["podSelector"]["matchLabels"] == services["selector"]


def wave(document):
    annotations = document["metadata"].get("annotations", {})
    return int(annotations.get("argocd.argoproj.io/sync-wave", 0))


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_argo_cd_migrates_after_what_the_migration_needs_and_before_the_rest(overlay):
    found = rendered(overlay)
    (migration,) = (each for each in found if each["kind"] == "Job")
    first = {each["kind"] for each in found if wave(each) < wave(migration)}
    rest = [each for each in found if wave(each) > wave(migration)]

    annotations = migration["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/hook"] == "Sync"
    assert annotations["argocd.argoproj.io/hook-delete-policy"] == "BeforeHookCreation"
    assert {"Namespace", "ServiceAccount", "ConfigMap"} <= first
    assert processes().keys() <= {each["metadata"]["name"] for each in rest}
    if overlay.name == "trial":
        assert {"StatefulSet", "Service", "Deployment"} <= first  # PostgreSQL and Redis.


def test_flux_replaces_the_migration_which_cannot_be_changed():
    (migration,) = base("Job").values()

    annotations = migration["metadata"]["annotations"]
    assert annotations["kustomize.toolkit.fluxcd.io/force"] == "enabled"


def test_only_what_reaches_other_systems_may_connect_to_more_than_the_databases():
    policies = base("NetworkPolicy")

    assert policies["nobody-else"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in policies["nobody-else"]["spec"]
    ports = {
        port["port"] for rule in policies["databases"]["spec"]["egress"] for port in rule["ports"]
    }
    assert ports == {53, 5432, 6379}
    (selected,) = policies["outbound"]["spec"]["podSelector"]["matchExpressions"]
    # As in compose: the others have no network that leads outside.
    assert set(selected["values"]) == {"web", "worker", "watchdog"}
    blocks = [each.get("ipBlock") for each in policies["outbound"]["spec"]["egress"][0]["to"]]
    assert "169.254.0.0/16" in blocks[0]["except"]  # The metadata service of clouds.


def test_who_may_reach_the_web_is_said_by_labels_that_the_guide_names():
    guide = (ROOT / "docs" / "deploy.md").read_text()
    (rule,) = base("NetworkPolicy")["web"]["spec"]["ingress"]
    labels = [each["namespaceSelector"]["matchLabels"] for each in rule["from"]]

    assert len(labels) == 3
    for key, value in [pair for each in labels for pair in each.items()]:
        assert f"{key}={value}" in guide


def test_only_the_migration_knows_the_owner():
    sources = {
        name: [next(iter(source.values()))["name"] for source in container(each)["envFrom"]]
        for name, each in {**processes(), **base("Job")}.items()
    }

    assert sources.pop("migrate") == ["switchgear", "switchgear", "switchgear-owner"]
    assert all("switchgear-owner" not in names for names in sources.values())


def test_a_backup_runs_as_the_migration_does_and_keeps_what_it_writes():
    (claim, backup) = documents(DEPLOY / "kubernetes" / "backup" / "backup.yaml")
    job = backup["spec"]["jobTemplate"]
    pod, migration = (each["spec"]["template"]["spec"] for each in (job, base("Job")["migrate"]))

    for field in ("securityContext", "serviceAccountName", "automountServiceAccountToken"):
        assert pod[field] == migration[field]
    for field in ("envFrom", "image", "securityContext"):
        assert container(job)[field] == migration["containers"][0][field]
    volumes = {each["name"]: each.get("persistentVolumeClaim") for each in pod["volumes"]}
    (kept,) = [name for name, kind in volumes.items() if kind]
    assert volumes[kept] == {"claimName": claim["metadata"]["name"]}
    (place,) = [
        each["mountPath"] for each in container(job)["volumeMounts"] if each["name"] == kept
    ]
    assert f'backup create "{place}/' in container(job)["command"][-1]


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_what_a_backup_is_made_with_is_named_as_the_overlay_names_it(overlay):
    found = rendered(overlay)
    jobs = [each["spec"]["jobTemplate"] for each in found if each["kind"] == "CronJob"]
    (migration,) = [each for each in found if each["kind"] == "Job"]

    assert len(jobs) == (overlay.name == "production")
    for job in jobs:
        for field in ("envFrom", "image"):
            assert container(job)[field] == container(migration)[field]


def test_nothing_lies_beside_what_is_applied():
    listed = set(yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"])

    assert listed == {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    monitors = documents(DEPLOY / "kubernetes" / "monitoring" / "monitors.yaml")
    assert {each["kind"] for each in monitors} == OPERATORS
