"""Worker processes that run ticks of ramps at given times until they are killed.

Run as `python -m switches.ramps.tests.crashing_worker`. The first line of stdin is JSON with the
database settings; each further line starts a worker, with the arguments of :func:`_live`. Workers
are forked from a process that never connects to the database, so that hundreds cost little. Each
reports in lines of JSON; the last one is how it ended.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
NEVER = 10**6


class Nursery:
    """The process that forks workers, one at a time; call :meth:`end` when done."""

    def __init__(self, database: dict[str, Any]) -> None:
        from django.conf import settings

        self._process = subprocess.Popen(
            [sys.executable, "-m", "switches.ramps.tests.crashing_worker"],
            cwd=ROOT,
            env={**os.environ, "SECRET_KEY": settings.SECRET_KEY},  # Opens the sealed addresses.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._write({name: database[name] for name in SETTINGS})
        self._living: Life | None = None

    def live(
        self,
        ramp: int,
        began: datetime,
        *,
        ticks: range,
        at: str = "",
        since: int = NEVER,
        number: signal.Signals = signal.SIGKILL,
        to_the_end: bool = False,
        after: int = 0,
    ) -> "Life":
        """Start a worker that runs ticks at these seconds after `began`, until it ends or stops.

        The worker ends with the ramp, or with the last tick if `to_the_end`. In the first tick from
        `since` on that reaches the probe point `at`, it sends itself the signal `number`; with
        `after`, it does so after that many statements in transactions.
        """
        if self._living is not None:
            self._living.kill()  # A test that failed left it.
        self._write(
            {
                "ramp": ramp,
                "began": began.isoformat(),
                "ticks": [ticks.start, ticks.stop],
                "at": at,
                "since": since,
                "number": int(number),
                "to_the_end": to_the_end,
                "after": after,
            }
        )
        self._living = Life(self)
        self._living.go_on()
        return self._living

    def read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        assert line, "the nursery is gone"
        return json.loads(line)

    def end(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def _write(self, report: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps(report) + "\n")
        self._process.stdin.flush()


class Life:
    """A worker process: its probe points by tick, and the ticks in which a ramp moved."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self.pid = 0
        self.points: list[tuple[int, str]] = []
        self.moved: list[int] = []
        self.ended_by: str | None = None
        self._is_over = False

    def go_on(self) -> None:
        """Read the worker's reports until it ends or is stopped."""
        while True:
            report = self._nursery.read()
            if "pid" in report:
                self.pid = report["pid"]
            elif "point" in report:
                self.points.append((report["tick"], report["point"]))
            elif "moved" in report:
                self.moved.append(report["tick"])
            else:
                self.ended_by, self._is_over = report["ended"], report["ended"] != "SIGSTOP"
                return

    def thaw(self) -> None:
        """Continue a stopped worker, and read its reports until it ends."""
        os.kill(self.pid, signal.SIGCONT)
        self.go_on()

    def kill(self) -> None:
        """Kill the worker if it still runs, and read its reports until it ends."""
        if self.pid and not self._is_over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            while not self._is_over:
                self.go_on()


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    from django.db import connection

    from controlplane.core.jobs import kinds

    connection.settings_dict.update(json.loads(sys.stdin.readline()))
    role = "-c role="
    options = connection.settings_dict["OPTIONS"]
    options["options"] = options["options"].partition(role)[0]
    options.pop("pool", None)
    kinds.get_kinds()
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if not pid:
            _live(**json.loads(line))
            os._exit(0)
        _say(pid=pid)
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if os.WIFSTOPPED(status):
            _say(ended=signal.Signals(os.WSTOPSIG(status)).name)
            status = os.waitpid(pid, 0)[1]
        _say(ended=signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "")


def _live(
    ramp: int,
    began: str,
    ticks: list[int],
    at: str,
    since: int,
    number: int,
    to_the_end: bool,
    after: int,
) -> None:
    from django.db import connection

    from controlplane.core.jobs import engine
    from controlplane.core.jobs.models import Job

    executed = 0

    def count(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        nonlocal executed
        result = execute(sql, params, many, context)
        executed += connection.in_atomic_block
        if executed == after and connection.in_atomic_block:
            os.kill(os.getpid(), number)
        return result

    connection.execute_wrappers.append(count)
    for tick in range(*ticks):

        def probe(point: str, tick: int = tick) -> None:
            _say(tick=tick, point=point)
            if point == at and tick >= since:
                os.kill(os.getpid(), number)

        now = datetime.fromisoformat(began) + timedelta(seconds=tick)
        if engine.run_tick("ramps.turn", now, probe):
            _say(tick=tick, moved=True)
        if not to_the_end and not Job.objects.get(pk=ramp).is_live:
            return


def _say(**report: Any) -> None:
    os.write(1, (json.dumps(report) + "\n").encode())


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
