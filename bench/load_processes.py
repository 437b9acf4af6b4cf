"""Load generators that run as processes of their own, so that servers' CPU time excludes theirs."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .servers import ROOT, cpu_seconds


class LoadProcess:
    """A running load generator that prints JSON, line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put("")

    def line(self, seconds: float, why: str) -> dict[str, Any]:
        """Return the next line, parsed; end the run if none comes within `seconds`."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise SystemExit(f"bench: {why}: nothing within {seconds:.0f} s") from None
        if not line:
            raise SystemExit(f"bench: {why}: the load clients have ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def waiting(self) -> Iterator[dict[str, Any]]:
        """Yield the lines that have already arrived, parsed."""
        with suppress(queue.Empty):
            while line := self._lines.get_nowait():
                yield json.loads(line)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self._process.pid)


@contextmanager
def running(module: str, *arguments: object) -> Iterator[LoadProcess]:
    """Context manager: run `python -m module …` as a load generator during the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield LoadProcess(process)
    finally:
        process.terminate()
        process.wait(timeout=10)
