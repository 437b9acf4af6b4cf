"""A bash session that runs a page's blocks one after another, as a reader would paste them."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from controlplane.documentation.blocks import Block

BACKGROUND_SECONDS = 30.0
"""Maximum time until the URL of a background block answers."""
WAIT_WITHOUT_URL_SECONDS = 2.0
MAX_OUTPUT = 4000
_LOOP = """
while IFS= read -r -u {commands} line; do eval "$line"; done
"""
# The trap ends the shell, or the `$(…)`, in which a command of a pipeline failed. Exit code 141
# (SIGPIPE) is not a failure: `head` closed the pipe.
_STRICT = """\
set -Euo pipefail; trap '[[ "${{PIPESTATUS[*]}}" =~ ^((0|141)\\ ?)+$ ]] || \
{{ echo "$LINENO: $BASH_COMMAND" >>{failed}; exit 1; }}' ERR; source {script} </dev/null"""
_RUN = f"""
: >{{out}}; {_STRICT} >>{{out}} 2>&1; trap - ERR; set +Euo pipefail; echo "0 $PWD" >&{{answers}}
"""
_RUN_FAILING = f"""
( {_STRICT} >{{out}} 2>&1 ); echo "$? $PWD" >&{{answers}}
"""
_RUN_BACKGROUND = f"""
( {_STRICT} >{{out}} 2>&1 ) & echo "$! $PWD" >&{{answers}}
"""


class BlockFailed(AssertionError):
    """Raised if a block does not do what the page says."""


class ShellSession:
    """Context manager: one bash process, in a process group of its own, for the blocks of `page`.

    Line numbers in errors are those of the page, since each script is padded with empty lines.
    """

    def __init__(
        self,
        page: str,
        directory: Path,
        scratch: Path,
        environment: Mapping[str, str],
        seconds: int,
    ) -> None:
        self._page = page
        self._scratch = scratch
        self._ends = time.monotonic() + seconds
        self._count = 0
        self.directory = directory
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._answers_number = answers
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", _LOOP.format(commands=commands)],
            cwd=directory,
            env={**environment, "PWD": str(directory)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(commands, answers),
        )
        os.close(commands)
        os.close(answers)

    def __enter__(self) -> "ShellSession":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._commands)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(3)
        os.close(self._answers)
        ends = time.monotonic() + 1
        while _group_exists(self._process.pid) and time.monotonic() < ends:
            time.sleep(0.02)

    def run(self, block: Block) -> None:
        """Run a block; raise :class:`BlockFailed` if it does not do what the page says."""
        self._count += 1
        folder = self._scratch / str(self._count)
        folder.mkdir(parents=True)
        script, out, failed = folder / Path(self._page).name, folder / "out", folder / "failed"
        script.write_text("\n" * (block.line - 1) + block.text)
        if block.background is not None:
            self._run_background(block, script, out, failed)
            return
        template = _RUN_FAILING if block.fails else _RUN
        answer = self._send(template, script=script, out=out, failed=failed)
        output = _read(out)
        # After a failure in `export X=$(…)`, the shell continues.
        has_failed = self._process.poll() is not None or (_read(failed) and not block.fails)
        if answer is None or has_failed:
            why = f"failed at line {_read(failed)}" if has_failed else "took too long"
            raise BlockFailed(self._explain(block, why, output))
        code, _, directory = answer.partition(" ")
        self.directory = Path(directory)
        if block.fails and code == "0":
            raise BlockFailed(self._explain(block, "should have failed", output))
        missing = [text for text in block.expected if text not in output]
        if missing:
            raise BlockFailed(self._explain(block, f"did not print {missing}", output))

    def write(self, block: Block) -> None:
        """Write a block with a title to that file, in the session's present directory."""
        path = self.directory / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)

    def _run_background(self, block: Block, script: Path, out: Path, failed: Path) -> None:
        answer = self._send(_RUN_BACKGROUND, script=script, out=out, failed=failed)
        pid = (answer or "").partition(" ")[0]
        url = block.background
        seconds = BACKGROUND_SECONDS if url or block.expected else WAIT_WITHOUT_URL_SECONDS
        ends = min(self._ends, time.monotonic() + seconds)
        while time.monotonic() < ends:
            if not pid or not _is_alive(int(pid)):
                raise BlockFailed(self._explain(block, "ended at once", _read(out)))
            missing = [text for text in block.expected if text not in _read(out)]
            if not missing and (_answers(url) if url else block.expected):
                return
            time.sleep(0.1)
        if url or block.expected:
            problem = f"did not answer at {url or '(no URL)'}, or did not print {block.expected}"
            raise BlockFailed(self._explain(block, problem, _read(out)))

    def _send(self, template: str, **paths: Path) -> str | None:
        """Send a command line to bash; return its answer, None if it ends or takes too long."""
        quoted = {name: shlex.quote(str(path)) for name, path in paths.items()}
        line = template.strip().format(answers=self._answers_number, **quoted)
        os.write(self._commands, f"{line}\n".encode())
        answer = b""
        while not answer.endswith(b"\n"):
            left = max(0.0, self._ends - time.monotonic())
            ready, _, _ = select.select([self._answers], [], [], min(left, 0.2))
            if ready and (part := os.read(self._answers, 4096)):
                answer += part
            elif self._process.poll() is not None or not left:
                return None
        return answer.decode().strip()

    def _explain(self, block: Block, problem: str, output: str) -> str:
        return (
            f"{self._page}, block at line {block.line}: {problem}\n\n{block.text}\n"
            f"output:\n{output[-MAX_OUTPUT:]}"
        )


def _read(path: Path) -> str:
    return path.read_text(errors="replace").strip() if path.exists() else ""


def _answers(url: str) -> bool:
    """Return True if an HTTP server responds, with any status."""
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def _group_exists(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
