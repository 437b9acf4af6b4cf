"""Prometheus' own view of rules over histories, by `promtool test rules`.

A history is written as the events of each minute, or as samples of counters; a window is a sum over
them. So it shares nothing with our cumulative rows and look-ups.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from slo.arithmetic.minutes import window_minutes
from slo.arithmetic.objective import BurnRateRule, Objective

from .histories import MinuteEvents

STATES = {"unknown": 0, "ok": 1, "firing": 2}
PROMTOOL = shutil.which("promtool")
MANY = 1000
"""Above this many answers, the states of every minute are recorded first, which is faster."""


@dataclass(frozen=True)
class Expected:
    """The state of a rule at the end of a minute."""

    minute: int
    rule: BurnRateRule
    state: str


def disagreements(
    folder: Path,
    series: Sequence[Mapping[str, str]],
    objective: Objective,
    expected: Sequence[Expected],
    sums: "Sums | None" = None,
) -> str:
    """Return where Prometheus disagrees, empty if nowhere."""
    assert PROMTOOL is not None
    expressions = {one.rule: state(one.rule, objective, sums or of_minutes) for one in expected}
    recorded = []
    if len(expected) > MANY:
        names = {rule: f"rule{place}" for place, rule in enumerate(expressions)}
        recorded = [{"record": names[rule], "expr": text} for rule, text in expressions.items()]
        expressions = {rule: f"sum({name})" for rule, name in names.items()}
    tests = [
        {
            "expr": expressions[one.rule],
            "eval_time": f"{one.minute}m",
            "exp_samples": [{"labels": "{}", "value": STATES[one.state]}],
        }
        for one in expected
    ]
    groups = [{"name": "rules", "interval": "1m", "rules": recorded}] if recorded else []
    (folder / "rules.yml").write_text(json.dumps({"groups": groups}))
    (folder / "test.yml").write_text(
        json.dumps(
            {
                "rule_files": ["rules.yml"],
                "evaluation_interval": "1m",
                "tests": [
                    {
                        "interval": "1m",
                        "input_series": series,
                        "promql_expr_test": tests,
                    }
                ],
            }
        )
    )
    process = subprocess.run(
        [PROMTOOL, "test", "rules", "test.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return "" if process.returncode == 0 else process.stdout + process.stderr


def events_by_minute(
    minutes: Sequence[MinuteEvents], objective: Objective
) -> list[Mapping[str, str]]:
    """Return the events of each minute, without excluded ones."""
    counted = [
        MinuteEvents(0, 0, is_covered=False)
        if any(begins < minute <= ends for begins, ends in objective.excluded)
        else one
        for minute, one in enumerate(minutes)
    ]
    return [
        values("bad", [one.bad for one in counted]),
        values("total", [one.total for one in counted]),
        values("covered", [int(one.is_covered) for one in counted]),
    ]


def values(name: str, numbers: Sequence[float | None]) -> Mapping[str, str]:
    """Return a series with a sample a minute, with gaps."""
    texts = ("_" if one is None else str(int(one)) for one in numbers)
    return {"series": name, "values": " ".join(texts)}


def state(rule: BurnRateRule, objective: Objective, sums: "Sums") -> str:
    """Return PromQL for the state of a rule: 2 firing, 1 ok, 0 unknown."""
    (long, long_above), (short, short_above) = (
        (_is_known(window, objective, sums), _above(window, rule, objective, sums))
        for window in (rule.long, rule.short)
    )
    fires = f"({long} * {long_above} * {short} * {short_above})"
    is_ok = f"clamp_max({long} * (1 - {long_above}) + {short} * (1 - {short_above}), 1)"
    return f"2 * {fires} + (1 - {fires}) * {is_ok}"


def _is_known(window: str, objective: Objective, sums: "Sums") -> str:
    minutes = window_minutes(window)
    needed = min(minutes, max(5, minutes / 10))
    total = sums("total", minutes)
    return (
        f"(({total} > bool 0) * ({total} >= bool {objective.min_events})"
        f" * ({sums('covered', minutes)} >= bool {needed:g}))"
    )


def _above(window: str, rule: BurnRateRule, objective: Objective, sums: "Sums") -> str:
    """Compare whole numbers, of which floats lose nothing."""
    limit = Fraction(rule.burn_rate) * Fraction(objective.budget)
    bad, total = (sums(name, window_minutes(window)) for name in ("bad", "total"))
    return f"({bad} * {limit.denominator} > bool {total} * {limit.numerator})"


def of_minutes(name: str, minutes: int) -> str:
    """Return PromQL over the samples of `minutes`, without the one at the beginning."""
    return f"sum_over_time({name}[{minutes * 60 - 1}s])"


def of_counters(name: str, minutes: int) -> str:
    """Return PromQL of increments of the counters `good` and `all`.

    From one sample to the next, at most two minutes apart; where any counter went down, also
    that of bad events, it restarted.
    """
    return f"(sum_over_time(({_GROWN[name]})[{minutes * 60 - 1}s:1m]) or vector(0))"


def _now(name: str, offset: str = "") -> str:
    return f"last_over_time({name}[59s]{offset})"


def _value_before(name: str) -> str:
    return f"last_over_time({name}[119s] offset 1m)"


_BAD_NOW = f"({_now('all')} - {_now('good')})"
_BAD_BEFORE = f"({_value_before('all')} - {_value_before('good')})"
_RESET = (
    f"clamp_max(({_now('all')} < bool {_value_before('all')})"
    f" + ({_now('good')} < bool {_value_before('good')})"
    f" + ({_BAD_NOW} < bool {_BAD_BEFORE}), 1)"
)
_GROWN = {
    "total": f"{_now('all')} - {_value_before('all')} * (1 - {_RESET})",
    "bad": f"{_BAD_NOW} - {_BAD_BEFORE} * (1 - {_RESET})",
    # A minute is told of if there is a sample at its end or, if only that one is missing, after it.
    "covered": f"(({_now('all')} * 0 + 1) and {_value_before('all')}) or"
    f" ((({_now('all', ' offset -1m')}) * 0 + 1) and {_now('all', ' offset 1m')})",
}
Sums = Callable[[str, int], str]
"""Maps `bad`, `total` or `covered` and a number of minutes to PromQL for the sum."""
