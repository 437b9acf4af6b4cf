"""Scenario: data may be leaking. The failing call is not retried, and everything is stopped.

A catastrophic failure gets neither a retry nor a fallback. Then a person engages `global:all` in
the console, which is replaced here by a console in memory.
"""

from switchgear import Fallback, SwitchEngaged, journal
from switchgear.failures.classification import Catastrophic
from switchgear.journal import Entry
from switchgear.testing import Console


class ForeignRows(Catastrophic):
    """Raised if a result contains rows of another user."""


def totals(user: str) -> str:
    raise ForeignRows("rows of another tenant")


def call_people(entry: Entry) -> None:
    """Notify people of a catastrophic failure, without its message, which may contain the leak."""
    if entry.name == "failure_catastrophic":
        print(f"told people: {entry.about}: {entry.fields['error']}")


journal.add_hook(call_people)
console = Console()
gear = console.client()
guarded = gear.policy(
    "core->totals", segment="finance", fallback=Fallback(default="totals of yesterday")
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
