"""Scenario: a credential has expired. The call is not retried, and people are notified.

A 401 is a persistent failure. It is recorded as the journal event `failure_persistent`, at most
once a minute per dependency, and passed to the log and to hooks.
"""

from switchgear import RetryParameters, Switchgear, journal
from switchgear.failures.classification import classify
from switchgear.failures.responses import respond
from switchgear.journal import Entry


class Unauthorised(Exception):
    status_code = 401


calls = 0


def fetch(case: str) -> str:
    global calls
    calls += 1
    raise Unauthorised("the token expired yesterday")


def call_people(entry: Entry) -> None:
    """Notify people of a persistent failure; in a real service this hook would open a ticket."""
    if entry.name == "failure_persistent":
        print(f"told people: {entry.about}: {entry.fields['error']}")


# A real service calls Switchgear.from_env(); the console can change these settings.
gear = Switchgear(None)
guarded = gear.policy("core->registry", retry=RetryParameters(attempts=3))(fetch)
journal.add_hook(call_people)

for case in ("C-1", "C-2", "C-3"):
    try:
        guarded(case)
    except Unauthorised as error:
        response = respond(error, "core->registry")
        print(f"{case}: {classify(error)}, tried again: {response.retry}")
print(f"{calls} calls, advice: {response.advice}")
