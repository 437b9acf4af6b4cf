"""Pages of the API reference, rendered from the OpenAPI document for anybody."""

import pytest

from controlplane.openapi import reference

DOCUMENT = {
    "paths": {
        "/things/{id}/": {
            "put": {
                "operationId": "update_thing",
                "summary": "Update a thing",
                "tags": ["big things"],
                "parameters": [
                    {"in": "path", "name": "id", "required": True, "schema": {"type": "integer"}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Thing"},
                            "example": {"steps": []},
                        }
                    }
                },
                "responses": {"204": {"description": "Updated."}},
            }
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "required": ["steps"],
                "properties": {
                    "steps": {"type": "array", "items": {"$ref": "#/components/schemas/Step"}},
                    "name": {"type": ["string", "null"], "maxLength": 40},
                },
            },
            "Step": {
                "type": "object",
                "properties": {
                    "percent": {"type": "integer", "minimum": 1, "maximum": 100},
                    "gate": {"oneOf": [{"enum": ["slo", "manual"]}, {"type": "null"}]},
                },
            },
        }
    },
}


def test_operation_lists_nested_fields_with_types_and_limits():
    section = reference.build_sections(DOCUMENT)["big-things"]

    operation = section.operations[0]
    assert (operation.method, operation.path) == ("PUT", "/things/{id}/")
    assert [(one.name, one.type) for one in operation.parameters] == [("id", "integer")]
    assert [(one.name, one.type, one.required) for one in operation.body.fields] == [
        ("steps", "list of object", True),
        ("steps[].percent", "integer, 1 to 100", False),
        ("steps[].gate", "slo | manual or null", False),
        ("name", "string, at most 40 characters or null", False),
    ]
    assert operation.body.example == '{\n  "steps": []\n}'
    assert [(one.status, one.body) for one in operation.results] == [("204", None)]


def test_object_that_contains_itself_is_listed_to_a_bounded_depth():
    node = {"type": "object", "properties": {"child": {"$ref": "#/components/schemas/Node"}}}
    operation = {
        "operationId": "get_node",
        "responses": {"200": {"content": {"application/json": {"schema": node}}}},
    }
    document = {
        "paths": {"/node": {"get": operation}},
        "components": {"schemas": {"Node": node}},
    }

    fields = reference.build_sections(document)["other"].operations[0].results[0].body.fields

    assert [one.name for one in fields] == ["child", "child.child", "child.child.child"]


def test_reference_is_public_and_strict_about_scripts(client):
    index = client.get("/api/docs/")
    page = client.get("/api/docs/switches/")

    assert index.status_code == page.status_code == 200
    assert "Engage a switch" in index.content.decode()
    assert "/api/v1/switches/{scope}/{key}/engage" in page.content.decode()
    for response in (index, page):
        assert b"<script" not in response.content
        assert b"<style" not in response.content
        assert "unsafe" not in response["Content-Security-Policy"]


def test_every_operation_has_its_place(client):
    index = client.get("/api/docs/").content.decode()
    document = client.get("/api/schema/").json()

    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in reference.METHODS:
                assert f"#{operation['operationId']}" in index, (method, path)


@pytest.mark.parametrize("slug", ["no-such-section", "SWITCHES"])
def test_unknown_section_is_not_found(client, slug):
    assert client.get(f"/api/docs/{slug}/").status_code == 404
