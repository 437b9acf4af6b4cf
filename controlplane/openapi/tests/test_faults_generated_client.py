"""The document is valid, and a client that openapi-python-client generates works for all of it."""

import importlib
import inspect
import json
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from django.test import Client as Browser
from openapi_spec_validator import OpenAPIV31SpecValidator

from controlplane.core.http.tests.callers import person, token_text
from controlplane.openapi.document import build
from controlplane.tests.security.callers import ALL_SCOPES

pytestmark = [pytest.mark.faults, pytest.mark.smoke, pytest.mark.timeout(300)]
PACKAGE = "generated_switchgear"
# It does not know YAML bodies; they are bytes to it.
CONFIG = {"content_type_overrides": {"application/yaml": "application/octet-stream"}}
DATA_PLANE = {
    *("stream_snapshots", "get_service_config", "report_instance"),
    *("evaluate_flag", "evaluate_flags", "stream_flag_events"),
}
PATH = {
    "scope": "feature",
    "key": "search",
    "week": "2026-W47",
    "caller": "core",
    "callee": "oracle",
}
SUCCESSES = {
    "list_switches": "SwitchPage",
    "get_switch": "Switch",
    "engage_switch": "SwitchAction",
    "preview_switch": "Preview",
    "check_traffic": "CheckResult",
    "create_dependency": "SavedDependency",
    "get_snapshot": "Snapshot",
    "list_attention": "AttentionPage",
    "list_audit_entries": "AuditEntryPage",
    "list_slos": "SloPage",
    "receive_alertmanager": "AlertmanagerResult",
    "trip_switch": "TripResult",
}


@pytest.fixture(scope="module")
def document():
    return build()


@pytest.fixture(scope="module")
def generated(document, tmp_path_factory):
    """The package, made by the generator without a warning."""
    folder = tmp_path_factory.mktemp("client")
    config, source = folder / "config.json", folder / "openapi.json"
    config.write_text(json.dumps({**CONFIG, "post_hooks": []}))
    source.write_text(json.dumps(document))
    command = Path(sys.executable).with_name("openapi-python-client")
    done = subprocess.run(
        [
            *(command, "generate", "--path", source, "--output-path", folder / PACKAGE),
            *("--meta", "none", "--config", config, "--fail-on-warning"),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(PACKAGE)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def functions(document, generated):
    """Each operation's module, by operation id."""
    found = {}
    for operations in document["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            tag = operation["tags"][0].replace(" ", "_").replace("-", "_")
            found[name] = importlib.import_module(f"{PACKAGE}.api.{tag}.{name}")
    return found


@pytest.fixture
def client(db, generated):
    """An admin's token with every scope, over the real application."""
    made = generated.AuthenticatedClient(
        base_url="http://testserver", token=token_text(person("admin", "ada"), ALL_SCOPES)
    )
    return made.set_httpx_client(
        httpx.Client(
            base_url="http://testserver",
            transport=httpx.MockTransport(by_django),
            headers={"Authorization": f"Bearer {made.token}"},
        )
    )


def by_django(request: httpx.Request) -> httpx.Response:
    """Answer by the real application, in this test's transaction."""
    answer = Browser(raise_request_exception=False).generic(
        request.method,
        request.url.raw_path.decode(),
        request.read(),
        request.headers.get("content-type", "application/octet-stream"),
        headers={name: request.headers[name] for name in ("authorization", "host")},
    )
    return httpx.Response(answer.status_code, headers=answer.headers, content=answer.getvalue())


def arguments(module: ModuleType, operation):
    """Return the arguments of its function: the path's parameters, and the example as the body."""
    given = {}
    for name, parameter in inspect.signature(module.sync_detailed).parameters.items():
        kind = parameter.annotation
        if name == "body":
            given[name] = body(module, operation)
        elif name != "client" and parameter.default is inspect.Parameter.empty:
            given[name] = value(name, kind)
    return given


def body(module, operation):
    content = operation["requestBody"]["content"]["application/json"]
    made = inspect.signature(module.sync_detailed).parameters["body"].annotation
    kinds = [kind for kind in getattr(made, "__args__", (made,)) if hasattr(kind, "from_dict")]
    return kinds[0].from_dict(content["example"])


def value(name, kind):
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return kind(PATH[name]) if name in PATH else next(iter(kind))
    if kind is uuid.UUID:
        return uuid.UUID(int=1)
    if kind is datetime:
        return datetime.now(UTC)
    return 1 if kind is int else PATH.get(name, "none-such")


def test_document_has_no_error_by_an_independent_validator(document):
    found = [
        f"{list(error.absolute_path)}: {error.message}"
        for error in OpenAPIV31SpecValidator(document).iter_errors()
    ]

    assert found == []


def test_generated_client_has_a_function_for_every_operation(functions):
    assert all(callable(module.sync_detailed) for module in functions.values())
    assert all(callable(module.asyncio_detailed) for module in functions.values())


def test_every_call_of_the_generated_client_is_answered_by_a_type(
    document, generated, functions, client
):
    answers, untyped = {}, []
    for operations in document["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            if name in DATA_PLANE:
                continue
            module = functions[name]
            answer = module.sync_detailed(client=client, **arguments(module, operation))
            answers[name] = (answer.status_code, type(answer.parsed).__name__)
            is_text = not answer.headers.get("content-type", "").endswith("json")
            if answer.status_code >= 500 or (answer.parsed is None and not is_text):
                untyped.append((name, answer.status_code, answer.content[:200]))

    assert untyped == [], untyped[:2]
    assert {name: answers[name][1] for name in SUCCESSES} == SUCCESSES, answers
    refused = [
        name for name, (status, kind) in answers.items() if status >= 400 and kind != "Problem"
    ]
    assert refused == []


def test_refusal_is_a_typed_problem(generated, functions, client):
    models = importlib.import_module(f"{PACKAGE}.models")
    request = models.EngageRequest.from_dict({"reason": "no", "expires_in": "1h"})

    answer = functions["engage_switch"].sync_detailed(
        scope=value("scope", models.EngageSwitchScope), key="chat", client=client, body=request
    )

    assert answer.status_code == 400
    assert isinstance(answer.parsed, models.Problem)
    assert answer.parsed.type_ == "urn:switchgear:problem:invalid-input"
    assert "reason" in answer.parsed.errors.additional_properties
