"""The reference pages have every operation of the API and every public name of the client."""

import re

import switchgear
from controlplane.documentation import api_reference
from controlplane.documentation.docstring_roles import replace_roles
from controlplane.openapi.reference import build_sections
from switchgear import dlq, llm, testing

from .pages import ROOT

PAGES = ROOT / "docs" / "reference"
DOCUMENT = {
    "paths": {
        "/things/{id}/": {
            "post": {
                "operationId": "things_post",
                "tags": ["trip-things"],
                "summary": "Change a thing",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {}}],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {
                                "properties": {"mode": {"enum": ["a", "b"], "description": "x|y"}}
                            },
                            "example": {"mode": "a"},
                        }
                    }
                },
                "responses": {
                    "200": {"description": "Changed."},
                    "default": {"description": "No."},
                },
            }
        }
    }
}


def test_an_operation_has_parameters_body_and_responses() -> None:
    (section,) = build_sections(DOCUMENT).values()

    page = api_reference.render_section(section)

    assert page.startswith("# Trip things\n\n## Change a thing { #things_post }\n")
    assert "`POST /things/{id}/`" in page
    assert "| `id` | any, in path, **required** |  |" in page
    assert "| `mode` | a \\| b | x\\|y |" in page
    assert '```json\n{\n  "mode": "a"\n}\n```' in page
    assert "`200` Changed." in page


def test_every_public_name_of_the_client_is_in_its_reference() -> None:
    listed = documented()

    public = {
        getattr(module, name).__name__
        for module in (switchgear, dlq, llm, testing)
        for name in module.__all__
        if name not in {"from_env"}
    }
    assert public - listed == set()


def test_a_role_of_a_docstring_becomes_code() -> None:
    assert replace_roles("See :class:`~switchgear.Policy` and `x`.") == "See `Policy` and `x`."


def documented() -> set[str]:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES.glob("client*.md"))
    return {name.rsplit(".", 1)[-1] for name in re.findall(r"^::: (switchgear\S+)$", text, re.M)}
