"""Names of dependencies as subjects of alerts."""

import pytest

from slo.arithmetic.subjects import format_subject, format_target


@pytest.mark.parametrize(
    ("subject", "shown"),
    [
        ("core->oracle", "core → oracle"),
        ("core-availability", "core-availability"),
        ("segment:finance", "segment:finance"),
        ("Moved a->b", "Moved a->b"),
        ("a->b->c", "a->b->c"),
    ],
)
def test_only_the_name_of_a_dependency_is_formatted(subject, shown):
    assert format_subject(subject) == shown


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("dependency:core->oracle", "dependency:core → oracle"),
        ("feature:nl2sql", "feature:nl2sql"),
        ("core->oracle", "core → oracle"),
    ],
)
def test_target_keeps_its_kind(target, shown):
    assert format_target(target) == shown
