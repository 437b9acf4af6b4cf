"""Oracle: natural language to SQL, with an experiment in how it retrieves."""

import random
import time

from demo import world
from demo.faults import Faults
from demo.serving import Answer, Body, Service, serve
from switchgear import Switchgear

THINKING_SECONDS = (0.01, 0.06)
QUICK_SECONDS = 1.0
EXPERIMENT = f"experiment:{world.RETRIEVAL}"


class Oracle:
    """Answers, by the new retrieval for visitors in the experiment while that may go on."""

    def __init__(self, gear: Switchgear, faults: Faults) -> None:
        self._gear = gear
        self._faults = faults
        self._answers = gear.sli("oracle-answers")
        self._quick = gear.sli("oracle-quick-answers")
        self.answer = gear.guard(feature=world.NL2SQL, targeting_key=_user)(self._answer)

    def _answer(self, question: Body) -> Answer:
        user = _user(question)
        is_new = world.takes_part(user) and self._gear.allowed(
            experiments=world.RETRIEVAL, targeting_key=user
        )
        with self._answers.measure(), self._quick.measure(within_seconds=QUICK_SECONDS):
            time.sleep(random.uniform(*THINKING_SECONDS))  # noqa: S311
            self._faults.strike(EXPERIMENT if is_new else "")
        sql = "SELECT count(*) FROM cases"
        return Answer(200, {"sql": sql, "retrieval": "v2" if is_new else "v1"})


def _user(question: Body) -> str:
    return str(question.get("user"))


def main() -> None:
    faults = Faults()
    with world.join("oracle") as gear:
        routes = {("POST", "/answer"): Oracle(gear, faults).answer}
        serve(Service(routes, faults), world.port("oracle"))


if __name__ == "__main__":
    main()
