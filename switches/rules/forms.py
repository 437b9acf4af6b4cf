"""What the screen asks of an admin who words a rule."""

import re
from typing import Any

from django import forms

from controlplane.core.changes import RuleForm
from controlplane.core.reasons import MAX_CHARACTERS
from switches.models import Rule
from switches.rules import judge

KINDS = (
    (judge.AT_MOST, "At most N", "no more than N of the group engaged at once"),
    (judge.EXCLUSIVE, "One at a time", "while one is engaged, no other of them"),
    (judge.AT_LEAST_ONE, "At least one", "the last one engaged is not released"),
    (judge.PROTECTED, "Protected", "never released by itself, nor at once by one person"),
)


class RemoveForm(RuleForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)


class ProposeForm(RemoveForm):
    """A rule's fields; its switches and patterns stand one on a line, or with commas between."""

    name = forms.CharField(max_length=400, required=False)
    kind = forms.ChoiceField(
        choices=[(kind, title) for kind, title, _ in KINDS], initial=judge.AT_MOST
    )
    switches = forms.CharField(max_length=10_000, required=False)
    n = forms.CharField(max_length=20, required=False, initial="1")

    def asked(self) -> dict[str, Any]:
        """The service's `asked`; a number is kept only by the kind that counts."""
        kind, n = self.given("kind"), self.given("n").strip()
        number = int(n) if n.isascii() and n.isdigit() else n or None
        return {
            "name": self.given("name"),
            "kind": kind,
            "switches": [text for text in re.split(r"[\s,]+", self.given("switches")) if text],
            "n": number if kind == judge.AT_MOST else None,
        }


def initial_of(row: Rule) -> dict[str, str]:
    """The form's fields as the rule stands."""
    return {
        "name": row.name,
        "kind": row.kind,
        "switches": "\n".join(row.switches),
        "n": str(row.n or 1),
    }
