from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework import serializers

from controlplane.core.http.resources import PercentField, RateField, Resource, TimestampField


class PartResource(Resource[Any]):
    at = TimestampField(allow_null=True)


class WholeResource(Resource[Any]):
    share = PercentField()
    rate = RateField()
    owner = serializers.CharField(source="part.owner", allow_null=True)
    part = PartResource(allow_null=True)
    notice = serializers.CharField(required=False)


def test_it_renders_attributes_in_the_declared_order() -> None:
    part = SimpleNamespace(owner="ops", at=datetime(2026, 11, 26, 14, 30, tzinfo=UTC))
    whole = SimpleNamespace(share=Decimal("25.00"), rate=1.239, part=part, notice="early")

    rendered = WholeResource.render(whole)

    assert list(rendered.items()) == [
        ("share", 25),
        ("rate", 1.24),
        ("owner", "ops"),
        ("part", {"at": "2026-11-26T14:30:00.000000Z"}),
        ("notice", "early"),
    ]
    assert isinstance(rendered["share"], int)


def test_a_missing_part_renders_null_and_an_optional_field_is_left_out() -> None:
    whole = SimpleNamespace(share=12.5, rate=0, part=None)

    assert WholeResource.render(whole) == {
        "share": 12.5,
        "rate": 0.0,
        "owner": None,
        "part": None,
    }


class LeafResource(Resource[Any]):
    name = serializers.CharField(source="get_name")
    size = serializers.IntegerField(default=7)
    missing = serializers.CharField(allow_null=True)


def test_methods_defaults_and_mappings_render_as_in_drf() -> None:
    class Leaf:
        size = "3"

        def get_name(self) -> str:
            return "oak"

    assert LeafResource.render(Leaf()) == {"name": "oak", "size": 3, "missing": None}
    assert LeafResource.render({"get_name": "elm"}) == {"name": "elm", "size": 7, "missing": None}


def test_an_attribute_that_is_absent_is_named_in_the_error() -> None:
    with pytest.raises(KeyError, match="get_name"):
        LeafResource.render({})
