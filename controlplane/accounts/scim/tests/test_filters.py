"""Filters and paths: what can be read, what it means, and what is refused."""

import pytest

from controlplane.accounts.scim import filters
from controlplane.accounts.scim.errors import InvalidRequest
from controlplane.accounts.scim.filters import AttributeComparison, Combination, Path, ValueFilter

WORK = {"value": "kim@example.com", "type": "work", "primary": True}
URN = "urn:ietf:params:scim:schemas:core:2.0:User:"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('userName eq "kim"', AttributeComparison("userName", "eq", "kim")),
        ('  userName   EQ "kim"  ', AttributeComparison("userName", "eq", "kim")),
        (f'{URN}userName eq "kim"', AttributeComparison("userName", "eq", "kim")),
        (
            f'{URN}name.familyName co "O\'Malley"',
            AttributeComparison("name.familyName", "co", "O'Malley"),
        ),
        (r'userName eq "a \"b\" ✓ \u00e9"', AttributeComparison("userName", "eq", 'a "b" ✓ é')),
        ('userName eq "(and) or ]"', AttributeComparison("userName", "eq", "(and) or ]")),
        ("active eq true", AttributeComparison("active", "eq", True)),
        ("active eq False", AttributeComparison("active", "eq", False)),
        ("title pr", AttributeComparison("title", "pr", None)),
        ("not (title pr)", Combination("not", [AttributeComparison("title", "pr", None)])),
        (
            'emails[type eq "work"]',
            ValueFilter("emails", AttributeComparison("type", "eq", "work")),
        ),
    ],
)
def test_filter_is_read(text, expected):
    assert filters.parse_filter(text) == expected


def test_and_binds_more_tightly_than_or():
    a, b, c = (AttributeComparison(name, "pr", None) for name in "abc")

    assert filters.parse_filter("a pr or b pr and c pr") == Combination(
        "or", [a, Combination("and", [b, c])]
    )
    assert filters.parse_filter("(a pr or b pr) and c pr") == Combination(
        "and", [Combination("or", [a, b]), c]
    )


@pytest.mark.parametrize(
    "text",
    [
        "userName",
        "userName eq",
        "userName eq kim",
        "eq",
        'userName is "kim"',
        'userName eq "kim',
        'userName eq "kim" and',
        'userName eq "kim" "pat"',
        '(userName eq "kim"',
        'userName eq "kim")',
        "not title pr",
        'emails[type eq "work"',
        "[]",
        "()",
        'userName eq "\\u0000"',
        'userName eq "\\ud800"',
        "(" * 100 + "a pr" + ")" * 100,
        'userName eq "' + "x" * 5000 + '"',
        '"',
    ],
)
def test_what_is_no_filter_is_refused(text):
    with pytest.raises(InvalidRequest) as refused:
        filters.parse_filter(text)

    assert refused.value.extra == {"scimType": "invalidFilter"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("members", Path("members")),
        (f"{URN}name.familyName", Path("name", None, "familyName")),
        ('members[value eq "2"]', Path("members", AttributeComparison("value", "eq", "2"))),
        (
            'emails[type eq "work"].value',
            Path("emails", AttributeComparison("type", "eq", "work"), "value"),
        ),
    ],
)
def test_path_is_read(text, expected):
    assert filters.parse_path(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a b", "a..b", ".a", "a.", 'a[b eq "c"]d', 'a.b[c eq "d"].e', "a[]", "1a", "a.b.c"]
)
def test_what_is_no_path_is_refused(text):
    with pytest.raises(InvalidRequest) as refused:
        filters.parse_path(text)

    assert refused.value.extra == {"scimType": "invalidPath"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('type eq "WORK"', True),
        ('type ne "home"', True),
        ('value co "EXAMPLE"', True),
        ('value sw "kim" and value ew ".com"', True),
        ('value sw "im"', False),
        ("primary eq true", True),
        ("display pr", False),
        ("not (display pr)", True),
        ('type eq "home" or primary eq true', True),
    ],
)
def test_value_matches(text, expected):
    assert filters.matches(filters.parse_filter(text), WORK) is expected
