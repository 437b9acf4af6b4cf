"""Ramps compared with the model, and the model's independence from the product's code."""

import ast
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from switches.ramps.tests.model import machine, model, parts, ramp, story
from switches.tests import messages

STEPS = 15
HERE = "switches.ramps.tests.model."
DRAWN = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)


@pytest.fixture
def _house(db: None, settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the tables that migrations create; tests commit nothing.

    Evaluations of ramps take no time, so that results don't depend on the machine's load.
    """
    messages.configure(settings)
    monkeypatch.setattr("switches.ramps.tick.time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.mark.parametrize("module", [model, parts, ramp, story])
def test_the_model_has_no_code_of_ours(module):
    tree = ast.parse(Path(module.__file__).read_text())

    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)

    assert imported
    for name in imported - {f"{HERE}parts", f"{HERE}ramp"}:
        assert name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.mark.slow
@pytest.mark.timeout(900)  # Takes seconds, but shrinking a failure takes minutes.
@pytest.mark.usefixtures("_house")
def test_ramps_do_what_the_model_says():
    examples = settings.default.max_examples * 3 // 10

    run_state_machine_as_test(
        machine.Ramps, settings=settings(DRAWN, max_examples=examples, stateful_step_count=STEPS)
    )


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("_house")
@pytest.mark.parametrize("turn", range(4))
def test_ramps_do_what_the_model_says_in_thousands_of_sequences(turn):
    number = int(os.environ.get("MODEL_SEED", "0")) or int.from_bytes(os.urandom(4)) + turn
    examples = int(os.environ.get("MODEL_EXAMPLES", "750"))
    print(f"MODEL_SEED={number}")
    machine.TALLY.clear()
    began = time.monotonic()

    run_state_machine_as_test(
        seed(number)(type("Seeded", (machine.Ramps,), {})),
        settings=settings(DRAWN, max_examples=examples, stateful_step_count=STEPS, database=None),
    )

    took = time.monotonic() - began
    print(f"{examples} sequences, {machine.TALLY['steps']} steps, {took:.0f} s")
    print(dict(sorted(machine.TALLY.items())))
