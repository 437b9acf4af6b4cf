"""`manage.py slo` with a worked case: a file of counters is imported and evaluated again."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from slo.models import CounterMinute
from slo.tests import factories

from .scenarios import NOON

pytestmark = pytest.mark.django_db

RULES = [
    {"long": "1h", "short": "5m", "burn_rate": 14.4, "severity": "page"},
    {"long": "6h", "short": "30m", "burn_rate": 6, "severity": "page"},
    {"long": "3d", "short": "6h", "burn_rate": 1, "severity": "ticket"},
]
DAYS = 3
BEGAN = NOON
"""The incident begins at the end of this minute, after days with 2 of 10,000 bad."""


def write_csv(path, share, minutes):
    good = total = 0
    lines = ["ts,good,total"]
    for minute in range(BEGAN - DAYS * 1440, BEGAN + minutes + 61):
        lines.append(f"{minute * 60},{good},{total}")
        bad = 10_000 * share if BEGAN <= minute < BEGAN + minutes else 2
        good, total = good + 10_000 - round(bad), total + 10_000
    path.write_text("\n".join(lines))
    return str(path)


def run_command(*arguments):
    out = StringIO()
    call_command("slo", *arguments, stdout=out)
    return out.getvalue().splitlines()


def backtested(name, minutes):
    span = ("--start", str(BEGAN * 60), "--end", str((BEGAN + minutes + 30) * 60), "--step", "60")
    return [json.loads(line) for line in run_command("backtest", name, *span, "--json")]


def firing_ticks(ticks, *rules):
    """Return the minutes into the incident at which any of these rules fires."""
    return [
        minute
        for minute, tick in enumerate(ticks)
        if any(tick["rules"][place]["state"] == "firing" for place in rules)
    ]


def test_fifteen_per_cent_for_ten_minutes(tmp_path):
    factories.slo("core", rules=RULES)

    (line,) = run_command("import-points", "core", write_csv(tmp_path / "p.csv", 0.15, 10))
    ticks = backtested("core", 10)

    assert line == f"core: {DAYS * 1440 + 71} points imported"
    assert firing_ticks(ticks, 0, 1) == list(range(6, 15))
    assert firing_ticks(ticks, 2) == []


def test_two_per_cent_for_three_hours(tmp_path):
    factories.slo("core", rules=RULES)

    run_command("import-points", "core", write_csv(tmp_path / "p.csv", 0.02, 180))
    ticks = backtested("core", 180)

    assert firing_ticks(ticks, 0, 1)[0] == 44
    assert firing_ticks(ticks, 2)[0] == 175


def test_a_third_of_a_per_cent_for_a_quarter_of_an_hour(tmp_path):
    factories.slo("core", rules=RULES)

    run_command("import-points", "core", write_csv(tmp_path / "p.csv", 0.003, 15))

    assert firing_ticks(backtested("core", 15), 0, 1, 2) == []


def test_the_same_file_again_changes_nothing(tmp_path):
    factories.slo("core", rules=RULES)
    path = write_csv(tmp_path / "p.csv", 0.15, 10)
    run_command("import-points", "core", path)
    before = list(CounterMinute.objects.order_by("minute").values_list())

    (line,) = run_command("import-points", "core", path)

    assert "0 points imported" in line
    assert list(CounterMinute.objects.order_by("minute").values_list()) == before


def test_points_may_come_by_standard_input(monkeypatch):
    factories.slo("core", rules=RULES)
    monkeypatch.setattr("sys.stdin", StringIO(f"{NOON * 60},1,1\n{NOON * 60 + 60},2,2\n"))

    assert run_command("import-points", "core", "-") == ["core: 2 points imported"]


@pytest.mark.django_db(transaction=True)
def test_a_file_with_a_wrong_line_is_refused_by_line_and_nothing_is_taken_in(tmp_path):
    factories.slo("core", rules=RULES)
    path = tmp_path / "p.csv"
    path.write_text(f"ts,good,total\n{NOON * 60},1,1\nsoon,2,2\n")

    with pytest.raises(CommandError, match="line 3: ts must be a time"):
        run_command("import-points", "core", str(path))

    assert not CounterMinute.objects.exists()


def test_a_file_that_is_not_there_is_said():
    factories.slo("core", rules=RULES)

    with pytest.raises(CommandError, match="can't be read"):
        run_command("import-points", "core", "/nowhere.csv")
