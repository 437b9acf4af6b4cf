"""Our regular expressions do not backtrack catastrophically."""

import importlib
import pkgutil
import re
import time

import pytest

import breakers
import controlplane
import slo
import switches

LONG = 1500
WORST = [
    *(letter * LONG for letter in "a1 -.:,\"'\\/[({<@%\n_"),
    *(
        f"{part}" * (LONG // len(part))
        for part in ("a1", "a.", "a-", "1.", "a@", "\\u0", "{[", " a")
    ),
    *(f"{part * (LONG // len(part))}!" for part in ("a", "1", "a.", "-", " ", "'", '"')),
]
MAX_SECONDS = 0.125
"""Limit of this process's CPU time, which is independent of other load.

A pattern in quadratic time takes four times as long for a text twice as long.
"""


def patterns():
    for package in (controlplane, switches, breakers, slo):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".tests" in found.name or ".migrations" in found.name:
                continue
            if found.name.endswith((".asgi", ".__main__", ".celery", ".plane_app")):
                continue
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    yield f"{found.name}.{name}", value


@pytest.mark.slow
def test_no_pattern_takes_long_for_any_text():
    slow, count = {}, 0
    for name, pattern in patterns():
        count += 1
        for text in WORST:
            given = text.encode() if isinstance(pattern.pattern, bytes) else text
            began = time.process_time()
            pattern.search(given)
            pattern.fullmatch(given)
            pattern.sub(given[:0], given)
            if (took := time.process_time() - began) > MAX_SECONDS:
                slow[name] = (given[:12], round(took, 1))

    assert not slow, slow
    assert count > 60
