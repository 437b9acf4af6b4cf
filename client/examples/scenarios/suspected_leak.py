"""Data may be leaking: everything is stopped at once by a person, and looked into afterwards.

The failure says that it is catastrophic: it is neither tried again nor answered by a fallback. Then
somebody engages `global:all`; here a console in memory stands for the real one, whose audit trail
has who stopped what, when and why.
"""

from switchgear import Fallback, SwitchEngaged, journal
from switchgear.failures.classification import Catastrophic
from switchgear.journal import Entry
from switchgear.testing import Console


class ForeignRows(Catastrophic):
    """The answer has rows that are not this user's."""


def totals(user: str) -> str:
    raise ForeignRows("rows of another tenant")


def call_people(entry: Entry) -> None:
    """A real one rings somebody up. What the failure says is not in it: that may be the leak."""
    if entry.name == "failure_catastrophic":
        print(f"told people: {entry.about}: {entry.fields['error']}")


journal.add_hook(call_people)
console = Console()
gear = console.client()
guarded = gear.policy(
    "core->totals",
    segment="finance",
    fallback=Fallback(default="totals of yesterday"),
)(totals)

try:
    guarded("kim")
except ForeignRows:
    print("kim: no answer, and none of yesterday instead")

console.engage("global:all", reason="Totals of other tenants are shown, INC-4711")
for user in ("kim", "lee"):
    try:
        print(guarded(user))
    except SwitchEngaged as stopped:
        print(f"{user}: stopped by {stopped.switch}: {stopped.reason}")
