"""Limits of YAML texts, which keep a file from ending the process or using up its memory."""

import pytest

from controlplane.core.configuration.files import MAX_DEPTH, MAX_NODES, parse_document


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000])
def test_deeply_nested_values_are_refused(text: str) -> None:
    errors: dict[str, list[str]] = {}

    assert parse_document("slo.yaml", text, errors) == {}
    assert f"more than {MAX_DEPTH} levels" in errors["slo.yaml"][0]


def test_values_nested_to_the_limit_are_read() -> None:
    errors: dict[str, list[str]] = {}
    levels = MAX_DEPTH - 1

    assert parse_document("slo.yaml", f"a: {'[' * levels}{']' * levels}", errors)
    assert not errors


def test_too_many_values_are_refused_before_they_are_built() -> None:
    errors: dict[str, list[str]] = {}

    found = parse_document("slo.yaml", f"a: [{'1,' * MAX_NODES}", errors)

    assert found == {}
    # The parser stopped at the limit, so it didn't find that the list isn't closed.
    assert f"more than {MAX_NODES:,} values" in errors["slo.yaml"][0]
