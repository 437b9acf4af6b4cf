"""The document is complete: names, errors and examples of every operation."""

import inspect
import re

import orjson
import pytest
from jsonschema import Draft202012Validator, FormatChecker

from controlplane.core.http.fields import Body, EmptyBody, Filters
from controlplane.core.http.resources import Resource
from controlplane.openapi.components import PREFIX, name_of
from controlplane.openapi.operations import OPERATIONS
from controlplane.openapi.tests.documents import api_document

GENERATED = re.compile(r"_(create|retrieve|update|partial_update|destroy|list)(_\d+)?$")
ALWAYS = {"400", "401", "403", "503", "default"}
OWN_ERRORS = "/ofrep/"  # OFREP prescribes the form of its errors.


@pytest.fixture(scope="module")
def document():
    return api_document()


@pytest.fixture(scope="module")
def operations(document):
    return [
        (method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def contents(operation, responses):
    """Each content of a request and its responses, components included."""
    yield from operation.get("requestBody", {}).get("content", {}).values()
    for response in operation["responses"].values():
        named = response.get("$ref", "").rpartition("/")[2]
        yield from (responses[named] if named else response).get("content", {}).values()


def test_document_names_its_license_and_its_server(document):
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    assert document["servers"] == [{**document["servers"][0], "url": "/"}]


def test_every_operation_has_its_row_of_names(operations):
    assert {(method, path) for method, path, _ in operations} == OPERATIONS.keys()


def test_every_operation_has_an_id_a_summary_and_a_description(operations):
    ids = [operation["operationId"] for _, _, operation in operations]
    poor = [
        operation["operationId"]
        for _, _, operation in operations
        if GENERATED.search(operation["operationId"])
        or not operation.get("summary")
        or not operation.get("description")
    ]

    assert poor == []
    assert len(set(ids)) == len(ids)


def test_every_operation_names_the_errors_that_occur(document, operations):
    problem = {"$ref": PREFIX + "Problem"}
    for _, path, operation in operations:
        answers, name = operation["responses"], operation["operationId"]
        parameters = [one["name"] for one in operation.get("parameters", ())]
        assert answers.keys() >= ALWAYS, name
        assert ("{" not in path) or "404" in answers, name
        assert ("Idempotency-Key" in parameters) == ("422" in answers), name
        for status, answer in answers.items():
            if status[0] in "45" and not path.startswith(OWN_ERRORS):
                assert "$ref" in answer, (name, status)
                named = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
                (content,) = named["content"].values()
                assert content["schema"] == problem, (name, status)


def test_every_request_and_response_has_an_example_that_fits_its_schema(document, operations):
    checked, wrong = 0, []
    for _, _, operation in operations:
        for content in contents(operation, document["components"]["responses"]):
            if "example" not in content:
                continue
            schema = {**content["schema"], "components": document["components"]}
            validator = Draft202012Validator(schema, format_checker=FormatChecker())
            wrong += [
                (operation["operationId"], error.message)
                for error in validator.iter_errors(content["example"])
            ]
            checked += 1

    assert wrong == []
    assert checked > len(operations)


def test_every_operation_has_an_example(document, operations):
    without = [
        operation["operationId"]
        for _, _, operation in operations
        for content in contents(operation, document["components"]["responses"])
        if not content.get("example")
    ]
    assert without == []


def test_no_component_is_named_after_our_classes(document):
    ours = re.compile(r"(Shape|Body|List)$|^Paginated|^Patched")
    names = document["components"]["schemas"]

    assert [name for name in names if ours.search(name)] == []
    assert b'Shape"' not in orjson.dumps(document)


def test_no_component_is_described_by_a_docstring_of_its_base_class(document):
    bases = {inspect.getdoc(base) for base in (Body, Filters, EmptyBody, Resource)}
    schemas = document["components"]["schemas"]

    assert [name for name, schema in schemas.items() if schema.get("description") in bases] == []


@pytest.mark.parametrize(
    ("serializer", "name"),
    [
        ("SwitchShape", "Switch"),
        ("EngageBody", "EngageRequest"),
        ("PaginatedSwitchShapeList", "SwitchPage"),
        ("PatchedDescribeSwitchBody", "DescribeSwitchRequest"),
        ("SavedDependencyShape", "SavedDependency"),
        ("Problem", "Problem"),
    ],
)
def test_component_is_named_after_what_it_is(serializer, name):
    assert name_of(serializer) == name
