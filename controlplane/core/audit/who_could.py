"""Answers to "who could have done this then?": in the API and on the page below *Audit*."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core import authority
from controlplane.core.actions import Action, Relation
from controlplane.core.authority import AccessHistory, PastHolder, PastRule, Period
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.http.fields import Filters, Moment
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView
from controlplane.core.ownership import find_problem
from controlplane.core.page_responses import PersonRequest, signed_in

DAY = timedelta(days=1)
MAX_PERIOD = timedelta(days=31)
FIRST_YEAR = 2000
TOO_EARLY = f"Must be in {FIRST_YEAR} or later."
TEAM_PREFIX = "team:"
RELEASES = {Action.RELEASE, Action.RELEASE_AT_ONCE}


def find_resource_problem(resource: str) -> str:
    """Return a sentence that says why this names no resource, "" if it does."""
    if "*" in resource:
        return "Name one resource, without `*`."
    if resource.startswith(TEAM_PREFIX):
        return "" if resource != TEAM_PREFIX else "Name the team."
    return find_problem(resource)


def read_history(
    action: Action, resource: str, start: datetime, end: datetime | None, now: datetime
) -> AccessHistory:
    """Return who could do the action between two times, but not after `now`.

    Without an `end`, the period is a day. Raise :class:`InvalidInput` for an invalid resource or
    period.
    """
    if problem := find_resource_problem(resource):
        raise InvalidInput({"resource": [problem]})
    if start >= now:
        raise InvalidInput({"from": ["Must be in the past."]})
    if start.year < FIRST_YEAR:
        raise InvalidInput({"from": [TOO_EARLY]})
    end = start + DAY if end is None else end
    if not timedelta() < end - start <= MAX_PERIOD:
        raise InvalidInput({"to": [f"Must be after `from`, at most {MAX_PERIOD.days} days."]})
    return authority.read_history(action, resource, Period(start, min(end, now)))


def day_of(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the start and the end of a day in a time zone."""
    bounds = (datetime.combine(one, time(), zone) for one in (day, day + DAY))
    start, end = (bound.astimezone(UTC) for bound in bounds)
    return start, end


class TeamNameShape(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()


class PeriodShape(Resource[Period]):
    start = TimestampField()
    end = TimestampField(help_text="Exclusive.")


class PastRuleShape(Resource[PastRule]):
    period = PeriodShape()
    owner = TeamNameShape(allow_null=True)
    relation = serializers.CharField(source="requirement.relation")
    role = serializers.CharField(source="requirement.role")


class PastHolderShape(Resource[PastHolder]):
    kind = serializers.ChoiceField(("user", "token"))
    name = serializers.CharField()
    because = serializers.CharField(help_text="Such as `operator, lead of Payments`.")
    periods = PeriodShape(many=True)


class AccessHistoryShape(Resource[AccessHistory]):
    period = PeriodShape()
    begins_at = TimestampField(
        allow_null=True, help_text="Time of the trail's first entry; nothing is known before it."
    )
    rules = PastRuleShape(many=True, help_text="The owner and the rule, by period.")
    holders = PastHolderShape(many=True)


class WhoCouldFilters(Filters):
    action = serializers.ChoiceField([action.value for action in Action])
    resource = serializers.CharField(
        max_length=250, help_text="Such as `segment:finance`, `stream:orders` or `team:payments`."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # `from` can't be written as an attribute.
        return {
            **super().get_fields(),
            "from": Moment(help_text="Start, inclusive."),
            "to": Moment(
                required=False,
                help_text=f"End, exclusive: a day later by default, {MAX_PERIOD.days} at most.",
            ),
        }


class WhoCouldView(ApiView):
    filters = WhoCouldFilters
    read_scope = "audit:read"

    @extend_schema(responses=AccessHistoryShape)
    def get(self, request: Request) -> Response:
        """Return who could do an action on a resource at a past time, from the trail alone.

        Break-glass is left out: with it, every approver can release at once, which needs a review.
        """
        asked = self.filters.parse(request.query_params)
        history = read_history(
            Action(asked["action"]), asked["resource"], asked["from"], asked.get("to"), db_now()
        )
        return Response(AccessHistoryShape(history).data)


class WhoCouldForm(forms.Form):
    """The question of the page; the day is one of the person's time zone."""

    action = forms.ChoiceField(
        choices=[(action.value, action.value.replace("_", " ")) for action in Action]
    )
    resource = forms.CharField(max_length=250)
    day = forms.DateField()

    def clean_resource(self) -> str:
        resource: str = self.cleaned_data["resource"]
        if problem := find_resource_problem(resource):
            raise forms.ValidationError(problem)
        return resource

    def clean_day(self) -> date:
        day: date = self.cleaned_data["day"]
        if day > timezone.localdate():
            raise forms.ValidationError("This day is yet to come.")
        if day.year < FIRST_YEAR:
            raise forms.ValidationError(TOO_EARLY)
        return day


@signed_in
@require_GET
def who_could_page(request: PersonRequest) -> HttpResponse:
    """Ask for an action, a resource and a day, and show who could have done it."""
    is_asked = bool(request.GET)
    initial = {"action": Action.RELEASE.value, "day": timezone.localdate().isoformat()}
    form = WhoCouldForm(request.GET if is_asked else None, initial=initial)
    context: dict[str, Any] = {"form": form, "now": timezone.now()}
    if is_asked and form.is_valid():
        action, resource = Action(form.cleaned_data["action"]), form.cleaned_data["resource"]
        start, end = day_of(form.cleaned_data["day"], timezone.get_current_timezone())
        history = read_history(action, resource, start, end, db_now())
        context |= _describe(history)
        context["whole_text"] = "all day" if history.period.end == end else "all day so far"
        context |= {"is_release": action in RELEASES, "entries": _link_entries(resource, history)}
    return render(request, "core/who_could.html", context)


def describe_rule(rule: PastRule) -> str:
    """Return who could do it by a rule, such as `anyone with the role operator or higher`."""
    needed = rule.requirement
    who = {
        Relation.ANYONE: "anyone",
        Relation.OWNER: "members of the owner, or of a team above it," if rule.owner else "anyone",
        Relation.ROOT: "members of root teams, or anyone while there are no teams,",
    }[needed.relation]
    return f"{who} with the role {needed.role} or higher"


def _describe(history: AccessHistory) -> dict[str, Any]:
    """Return the parts of the page that show a history."""
    whole = (history.period,)
    rules = [
        {
            "rule": rule,
            "periods": [rule.period],
            "is_whole": (rule.period,) == whole,
            "text": describe_rule(rule),
        }
        for rule in history.rules
    ]
    holders: dict[str, list[dict[str, Any]]] = {"user": [], "token": []}
    for one in history.holders:
        row = {"holder": one, "periods": one.periods, "is_whole": one.periods == whole}
        holders[one.kind].append(row)
    return {
        "history": history,
        "rules": rules,
        "people": holders["user"],
        "tokens": holders["token"],
        "is_incomplete": history.begins_at is None or history.begins_at > history.period.start,
    }


def _link_entries(resource: str, history: AccessHistory) -> str:
    """Return the address of the trail's entries about the resource in that period."""
    zone = timezone.get_current_timezone()
    since, until = (
        f"{at.astimezone(zone):%Y-%m-%dT%H:%M}" for at in (history.period.start, history.period.end)
    )
    return reverse("audit_page", query={"target": resource, "since": since, "until": until})
