"""Oracle: turns questions into SQL by a language model, with an experiment in retrieval."""

from demo import world
from demo.faults import Faults
from demo.http_service import Answer, Body, Service, serve
from demo.model import Provider
from switchgear import Switchgear

QUICK_SECONDS = 1.0
EXPERIMENT = f"experiment:{world.RETRIEVAL}"


class Oracle:
    """Answers questions, by the new retrieval for visitors in the experiment while that is allowed.

    The console's fallback of `oracle->openai` decides which model is asked when the first one
    fails.
    """

    def __init__(self, gear: Switchgear, faults: Faults) -> None:
        self._gear = gear
        self._faults = faults
        self._answers = gear.sli("oracle-answers")
        self._quick = gear.sli("oracle-quick-answers")
        complete = Provider(faults).complete
        self._complete = gear.policy("oracle->openai", providers={"openai": complete})(complete)
        self.answer = gear.guard(feature=world.NL2SQL, targeting_key=_user)(self._answer)

    def _answer(self, question: Body) -> Answer:
        user = _user(question)
        is_new = world.takes_part(user) and self._gear.allowed(
            experiments=world.RETRIEVAL, targeting_key=user
        )
        with self._answers.measure(), self._quick.measure(within_seconds=QUICK_SECONDS):
            said = self._complete(question)
            self._faults.strike(EXPERIMENT if is_new else "")
        return Answer(200, {**said, "retrieval": "v2" if is_new else "v1"})


def _user(question: Body) -> str:
    return str(question.get("user"))


def main() -> None:
    faults = Faults()
    with world.join("oracle") as gear:
        routes = {("POST", "/answer"): Oracle(gear, faults).answer}
        serve(Service(routes, faults), world.port("oracle"))


if __name__ == "__main__":
    main()
