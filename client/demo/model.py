"""A fake provider of language models, which can be overloaded."""

import random
import time

from demo.faults import Faults
from demo.http_service import Body

FIRST = "gpt-4o"
THINKING_SECONDS = (0.01, 0.06)


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

    def complete(self, question: Body, model: str = FIRST) -> dict[str, str]:
        """Return SQL and the name of `model`; raise :class:`Overloaded` if it is overloaded."""
        time.sleep(random.uniform(*THINKING_SECONDS))  # noqa: S311
        if model == FIRST and self._faults.overloads():
            raise Overloaded(model)
        return {"sql": "SELECT count(*) FROM cases", "model": model}
