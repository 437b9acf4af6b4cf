"""Scenario: a new model answers worse, so its experiment is stopped and later ramped up.

With a real console, a person or an SLO engages the switch; here a console in memory replaces it.
"""

from switchgear.testing import Console

USERS = [f"user-{number}" for number in range(200)]

console = Console()
gear = console.client()


def model_for(user: str) -> str:
    is_in = gear.allowed(experiments="new-model", targeting_key=user)
    return "new" if is_in else "old"


def show(when: str) -> None:
    models = [model_for(user) for user in USERS]
    print(f"{when}: {models.count('new')} of {len(models)} get the new model")


show("released")
console.engage("experiment:new-model", reason="It invents sources since this morning")
show("stopped")
users_in: set[str] = set()
for percent in (5, 25, 99):
    console.ramp("experiment:new-model", percent)
    now_in = {user for user in USERS if model_for(user) == "new"}
    stays = now_in >= users_in
    print(f"ramp at {percent} %: {len(now_in)} get it, and nobody is sent away: {stays}")
    users_in = now_in
console.release("experiment:new-model")
show("mended")
