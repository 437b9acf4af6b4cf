"""Forms of teams and of the rules of authority."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from controlplane.core.actions import Action, Relation
from controlplane.core.change_views import ServiceForm
from controlplane.core.roles import Role

from .fields import MAX_LENGTHS

MEMBER_CHOICES = (
    ("member", "may do what the rules give the owner, as far as their own role allows"),
    ("lead", "also has the role approver for what the team owns, if an operator"),
)
REMOVE = ""


class ChangeRequestForm(ServiceForm):
    reason = forms.CharField(max_length=4000, required=False)
    seen = forms.CharField(max_length=64, required=False)


class TeamForm(ChangeRequestForm):
    name = forms.CharField(max_length=400, required=False)
    description = forms.CharField(max_length=1000, required=False)
    runbook_url = forms.CharField(max_length=1000, required=False)
    parent = forms.ChoiceField(required=False)
    member_group = forms.CharField(max_length=400, required=False)
    lead_group = forms.CharField(max_length=400, required=False)

    def __init__(self, parents: Sequence[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["parent"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above
        field.choices = [("", "None: a root team"), *parents]

    def read_fields(self) -> dict[str, Any]:
        texts = {name: self.get_text(name) for name in MAX_LENGTHS}
        return {**texts, "parent": self.get_text("parent") or None}


class NewTeamForm(TeamForm):
    slug = forms.CharField(max_length=100, required=False)
    leads = forms.CharField(max_length=40_000, required=False)
    members = forms.CharField(max_length=40_000, required=False)
    owns = forms.CharField(max_length=40_000, required=False)

    def read_fields(self) -> dict[str, Any]:
        roles = dict.fromkeys(split_words(self.get_text("members")), "member")
        roles |= dict.fromkeys(split_words(self.get_text("leads")), "lead")
        return {
            **super().read_fields(),
            "members": roles,
            "owns": split_words(self.get_text("owns")),
        }


class MembersForm(ChangeRequestForm):
    people = forms.CharField(max_length=40_000, required=False)
    role = forms.ChoiceField(choices=MEMBER_CHOICES, initial="member")

    renamed: Mapping[str, str] = {"members": "people"}


class MemberForm(ChangeRequestForm):
    role = forms.ChoiceField(
        choices=[*MEMBER_CHOICES, (REMOVE, "no longer a member")], required=False
    )
    renamed: Mapping[str, str] = {"members": "role"}


class PatternsForm(ChangeRequestForm):
    owns = forms.CharField(max_length=200_000, required=False)


class RuleForm(ChangeRequestForm):
    action = forms.ChoiceField(choices=[(one.value, one.value) for one in Action])
    kind = forms.CharField(max_length=20, required=False)
    relation = forms.ChoiceField(choices=[(one.value, one.value) for one in Relation])
    role = forms.ChoiceField(choices=[(one.value, one.value) for one in Role])


def split_words(text: str) -> list[str]:
    """Return the words of a text, which spaces, commas or line ends separate."""
    return [one for one in re.split(r"[\s,]+", text) if one]
