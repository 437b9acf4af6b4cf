"""Database queries of users and groups, by SCIM filters."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from controlplane.accounts.models.directory import DirectoryGroup, DirectoryUser
from controlplane.accounts.models.people import User

from . import filters
from .documents import normalize_group_name, parse_id
from .errors import InvalidRequest
from .filters import AttributeComparison, Combination, Expression, ValueFilter

Condition = Callable[[str, Any], Q | None]
"""A function from operator and value to a condition; None for what can't be compared so."""
TEXT_LOOKUPS = {"eq": "iexact", "co": "icontains", "sw": "istartswith", "ew": "iendswith"}
ORDER_LOOKUPS = {"eq": "exact", "gt": "gt", "ge": "gte", "lt": "lt", "le": "lte"}


def filter_users(text: str) -> QuerySet[DirectoryUser]:
    """Return the users that match a filter, all for ""; raise InvalidRequest (invalidFilter)."""
    rows = DirectoryUser.objects.select_related("user").order_by("user_id")
    return rows.filter(_build(filters.parse_filter(text), _USER)) if text else rows


def filter_groups(text: str) -> QuerySet[DirectoryGroup]:
    """Return the groups that match a filter, all for ""; raise InvalidRequest (invalidFilter)."""
    rows = DirectoryGroup.objects.order_by("pk").distinct()
    return rows.filter(_build(filters.parse_filter(text), _GROUP)) if text else rows


def _build(expression: Expression, attributes: Mapping[str, Condition]) -> Q:
    if isinstance(expression, Combination):
        parts = [_build(part, attributes) for part in expression.parts]
        if expression.operator == "not":
            return ~parts[0]
        found = parts[0]
        for part in parts[1:]:
            found = found & part if expression.operator == "and" else found | part
        return found
    if isinstance(expression, ValueFilter):
        return _build_value_filter(expression, attributes)
    if expression.attribute.casefold().startswith("emails") and attributes is _USER:
        name = expression.attribute.partition(".")[2] or "value"
        return _match_emails(AttributeComparison(name, expression.operator, expression.value))
    return _compare(expression, attributes)


def _compare(comparison: AttributeComparison, attributes: Mapping[str, Condition]) -> Q:
    condition = attributes.get(comparison.attribute.casefold())
    if condition is None:
        raise InvalidRequest("invalidFilter", f"It can't filter by {comparison.attribute}.")
    operator, value = comparison.operator, comparison.value
    found = condition("eq" if operator == "ne" else operator, value)
    if found is None:
        shown = f"{comparison.attribute} can't be compared by {operator} with this value."
        raise InvalidRequest("invalidFilter", shown)
    return ~found if operator == "ne" else found


def _build_value_filter(expression: ValueFilter, attributes: Mapping[str, Condition]) -> Q:
    name = expression.attribute.casefold()
    if name == "emails" and attributes is _USER:
        return _match_emails(expression.inner)
    inner = expression.inner
    if name == "members" and isinstance(inner, AttributeComparison) and inner.attribute == "value":
        return _compare(
            AttributeComparison("members.value", inner.operator, inner.value), attributes
        )
    raise InvalidRequest("invalidFilter", f"It can't filter by values of {expression.attribute}.")


def _match_emails(inner: Expression) -> Q:
    """Return a condition for users with a matching address; it compares them here, not by SQL."""
    rows = DirectoryUser.objects.values_list("pk", "attributes__emails")
    return Q(
        pk__in=[
            pk for pk, emails in rows if any(filters.matches(inner, each) for each in emails or ())
        ]
    )


def _text(column: str) -> Condition:
    def condition(operator: str, value: Any) -> Q | None:
        if operator == "pr":
            return Q(**{f"{column}__isnull": False}) & ~Q(**{column: ""})
        if operator not in TEXT_LOOKUPS or not isinstance(value, str):
            return None
        return Q(**{f"{column}__{TEXT_LOOKUPS[operator]}": value})

    return condition


def _name(column: str, normalize: Callable[[str], str] = User.normalize_username) -> Condition:
    """Return a condition for texts that are stored in normal form, such as user names."""
    text = _text(column)

    def condition(operator: str, value: Any) -> Q | None:
        return text(operator, normalize(value) if isinstance(value, str) else value)

    return condition


def _exact(column: str) -> Condition:
    def condition(operator: str, value: Any) -> Q | None:
        if operator == "pr":
            return ~Q(**{column: ""})
        return Q(**{column: value}) if operator == "eq" and isinstance(value, str) else None

    return condition


def _id(column: str) -> Condition:
    def condition(operator: str, value: Any) -> Q | None:
        if operator == "pr":
            return Q(**{f"{column}__isnull": False})
        if operator != "eq" or not isinstance(value, str):
            return None
        found = parse_id(value)
        return Q(pk__in=[]) if found is None else Q(**{column: found})

    return condition


def _flag(column: str) -> Condition:
    def condition(operator: str, value: Any) -> Q | None:
        if operator == "pr":
            return Q(pk__isnull=False)
        if isinstance(value, str) and value.casefold() in {"true", "false"}:
            value = value.casefold() == "true"
        return Q(**{column: value}) if operator == "eq" and isinstance(value, bool) else None

    return condition


def _moment(column: str) -> Condition:
    def condition(operator: str, value: Any) -> Q | None:
        if operator == "pr":
            return Q(pk__isnull=False)
        moment = _parse_moment(value)
        if operator not in ORDER_LOOKUPS or moment is None:
            return None
        return Q(**{f"{column}__{ORDER_LOOKUPS[operator]}": moment})

    return condition


def _parse_moment(value: Any) -> datetime | None:
    try:
        moment = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


_USER: Mapping[str, Condition] = {
    "id": _id("pk"),
    "externalid": _exact("external_id"),
    "username": _name("attributes__userName"),
    "displayname": _text("user__display_name"),
    "name.formatted": _text("attributes__name__formatted"),
    "name.familyname": _text("attributes__name__familyName"),
    "name.givenname": _text("attributes__name__givenName"),
    "active": _flag("user__is_active"),
    "meta.created": _moment("created_at"),
    "meta.lastmodified": _moment("changed_at"),
}
_GROUP: Mapping[str, Condition] = {
    "id": _id("pk"),
    "externalid": _exact("external_id"),
    "displayname": _name("name", normalize_group_name),
    "members": _id("members"),
    "members.value": _id("members"),
    "meta.created": _moment("created_at"),
    "meta.lastmodified": _moment("changed_at"),
}
