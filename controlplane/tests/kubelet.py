"""A kubelet simulation: runs a manifest's probes at their intervals on a real process."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from controlplane.tests.deployment import ROOT, container, processes
from controlplane.tests.installation import free_port

ADDRESS = "10.244.7.31"  # Of the pod: kubelet has no other name for it.


class Probe:
    """A probe of the manifest, against the port used in the test."""

    def __init__(self, said: Mapping[str, Any], port: int) -> None:
        self.delay = said.get("initialDelaySeconds", 0)
        self.period: float = said["periodSeconds"]
        self.failures: int = said["failureThreshold"]
        self._timeout = said["timeoutSeconds"]
        self._url = f"http://127.0.0.1:{port}{said['httpGet']['path']}"

    def ask(self) -> int:
        """The status, or 0 for none in time."""
        try:
            headers = {"Host": f"{ADDRESS}:8000"}
            return httpx.get(self._url, headers=headers, timeout=self._timeout).status_code
        except httpx.HTTPError:
            return 0


class Pod:
    """A container of the base's workload `role`, on a port of its own."""

    def __init__(self, role: str, environment: Mapping[str, str], output: Path) -> None:
        workload = processes()[role]
        said = container(workload)
        self.grace = workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.startup, self.live, self.ready = (
            Probe(said[kind], self.port)
            for kind in ("startupProbe", "livenessProbe", "readinessProbe")
        )
        option = "--port" if role in {"web", "dataplane"} else "--health-port"
        self._output = output
        self._ended = threading.Event()
        self._misses = 0
        self.restarts = 0
        with output.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", *said["args"], option, str(self.port)],
                cwd=ROOT,
                env=dict(environment),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> float:
        """Wait for startup as kubelet does, return the seconds, and start the liveness probe."""
        began = time.monotonic()
        limit = self.startup.delay + self.startup.period * self.startup.failures
        while self.startup.ask() != 200:
            assert self.process.poll() is None, self.read_output()
            assert time.monotonic() - began < limit, f"not within {limit} s: {self.read_output()}"
            time.sleep(0.5)
        self._watcher.start()
        return time.monotonic() - began

    def read_output(self) -> str:
        return self._output.read_text(errors="replace")[-3000:]

    def freeze(self) -> None:
        os.killpg(self.process.pid, signal.SIGSTOP)

    def term(self) -> float:
        """SIGTERM to the container's first process; the seconds until it was gone."""
        began = time.monotonic()
        self._ended.set()
        self.process.terminate()
        self.process.wait(self.grace)
        return time.monotonic() - began

    def end(self) -> None:
        self._ended.set()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait(10)

    def _watch(self) -> None:
        while not self._ended.wait(self.live.period):
            self._misses = 0 if self.live.ask() == 200 else self._misses + 1
            if self._misses >= self.live.failures:
                self._misses = 0
                self.restarts += 1
