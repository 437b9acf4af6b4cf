"""A language model that is none, with a provider's bad days."""

import random
import time

from demo.faults import Faults
from demo.serving import Body

FIRST = "gpt-4o"
THINKING_SECONDS = (0.01, 0.06)


class Overloaded(Exception):
    """As a provider says it: its clients find `code` and `status` in the error."""

    code = "model_overloaded"
    status = 503

    def __init__(self, model: str) -> None:
        super().__init__(f"{model} is overloaded")


class Provider:
    """All of its models are one; the first is the one that everybody wants."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def complete(self, question: Body, model: str = FIRST) -> dict[str, str]:
        """SQL, and which model wrote it. Raises :class:`Overloaded`."""
        time.sleep(random.uniform(*THINKING_SECONDS))  # noqa: S311
        if model == FIRST and self._faults.overloads():
            raise Overloaded(model)
        return {"sql": "SELECT count(*) FROM cases", "model": model}
