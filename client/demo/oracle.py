"""The demo service `oracle`, which turns questions into SQL by a fake language model."""

import random
import time

from demo import world
from demo.faults import Faults
from demo.http_service import Body, FaultyService, ServiceResponse, get_user, serve
from switchgear import Switchgear

QUICK_SECONDS = 1.0
FIRST_MODEL = "gpt-4o"
THINKING_SECONDS = (0.01, 0.06)
EXPERIMENT = f"experiment:{world.RETRIEVAL}"


class Overloaded(Exception):
    """Raised if the model is overloaded, with `code` and `status` as in real providers' errors."""

    code = "model_overloaded"
    status = 503

    def __init__(self, model: str) -> None:
        super().__init__(f"{model} is overloaded")


class FakeProvider:
    """A provider of several models, of which only the first can be overloaded."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def complete(self, question: Body, model: str = FIRST_MODEL) -> dict[str, str]:
        """Return SQL and the name of `model`; raise :class:`Overloaded` if it is overloaded."""
        time.sleep(random.uniform(*THINKING_SECONDS))  # noqa: S311
        if model == FIRST_MODEL and self._faults.overloads():
            raise Overloaded(model)
        return {"sql": "SELECT count(*) FROM cases", "model": model}


class Oracle:
    """The request handler of the service oracle.

    Visitors in the experiment get the new retrieval, unless its switch is engaged. If the first
    model fails, the fallback of `oracle->openai` in the console names the next one.
    """

    def __init__(self, gear: Switchgear, faults: Faults) -> None:
        self._gear = gear
        self._faults = faults
        self._answers = gear.sli("oracle-answers")
        self._quick = gear.sli("oracle-quick-answers")
        complete = FakeProvider(faults).complete
        self._complete = gear.policy("oracle->openai", providers={"openai": complete})(complete)
        self.answer = gear.guard(feature=world.NL2SQL, targeting_key=get_user)(self._answer)

    def _answer(self, question: Body) -> ServiceResponse:
        user = get_user(question)
        is_new = world.takes_part(user) and self._gear.allowed(
            experiments=world.RETRIEVAL, targeting_key=user
        )
        with self._answers.measure(), self._quick.measure(within_seconds=QUICK_SECONDS):
            completion = self._complete(question)
            self._faults.strike(EXPERIMENT if is_new else "")
        return ServiceResponse(200, {**completion, "retrieval": "v2" if is_new else "v1"})


def main() -> None:
    faults = Faults()
    with world.connect("oracle") as gear:
        routes = {("POST", "/answer"): Oracle(gear, faults).answer}
        serve(FaultyService(routes, faults), world.service_port("oracle"))


if __name__ == "__main__":
    main()
