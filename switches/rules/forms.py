"""Forms that propose changes of safety rules."""

import re
from typing import Any

from django import forms

from controlplane.core.change_views import ServiceForm
from controlplane.core.reasons import MAX_CHARACTERS
from switches.models import Rule
from switches.rules import evaluation

KINDS = (
    (evaluation.AT_MOST, "At most N", "no more than N of the group engaged at once"),
    (evaluation.EXCLUSIVE, "One at a time", "while one is engaged, no other of them"),
    (evaluation.AT_LEAST_ONE, "At least one", "the last one engaged is not released"),
    (evaluation.PROTECTED, "Protected", "never released by itself, nor at once by one person"),
)


class RemoveForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)


class ProposeForm(RemoveForm):
    """Fields of a rule; switches and patterns are separated by lines or commas."""

    name = forms.CharField(max_length=400, required=False)
    kind = forms.ChoiceField(
        choices=[(kind, title) for kind, title, _ in KINDS], initial=evaluation.AT_MOST
    )
    switches = forms.CharField(max_length=10_000, required=False)
    n = forms.CharField(max_length=20, required=False, initial="1")

    def service_arguments(self) -> dict[str, Any]:
        """Return the service's `asked`; `n` is kept for rules of kind `at_most` only."""
        kind, n = self.given("kind"), self.given("n").strip()
        number = int(n) if n.isascii() and n.isdigit() else n or None
        return {
            "name": self.given("name"),
            "kind": kind,
            "switches": [text for text in re.split(r"[\s,]+", self.given("switches")) if text],
            "n": number if kind == evaluation.AT_MOST else None,
        }


def initial_of(row: Rule) -> dict[str, str]:
    """Return the form's initial values for a rule."""
    return {
        "name": row.name,
        "kind": row.kind,
        "switches": "\n".join(row.switches),
        "n": str(row.n or 1),
    }
