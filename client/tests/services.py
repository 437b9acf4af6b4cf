"""Services of a test: real processes that hold a client, asked over real HTTP."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.consoles import TOKEN, Console

CLIENT = Path(__file__).resolve().parents[1]
EXAMPLES = CLIENT / "examples"
PATIENCE_SECONDS = 60.0
_NOT_THEIRS = ("SWITCHGEAR_", "DJANGO_", "GRANIAN_", "GUNICORN_", "WEB_")


def environment(console: Console | None, state: Path, **more: str) -> dict[str, str]:
    """That of a service of this console, or of none."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_THEIRS)}
    told = {} if console is None else {"SWITCHGEAR_URL": console.url, "SWITCHGEAR_TOKEN": TOKEN}
    return {
        **clean,
        **told,
        "PYTHONPATH": f"{CLIENT}{os.pathsep}{EXAMPLES}",
        "XDG_STATE_HOME": str(state),
        **more,
    }


@contextlib.contextmanager
def running(
    module: str, *arguments: str, folder: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m module …` while it is needed; its output is in `folder`, for whoever wonders."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=env,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    except BaseException:
        sys.stderr.write((folder / "output").read_text(errors="replace"))
        raise
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ask(url: str) -> tuple[int, str]:
    """Status and body; status 0 if nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def ask_json(url: str) -> tuple[int, Any]:
    status, body = ask(url)
    return status, json.loads(body) if body[:1] in "{[" and body else body


def until(holds: Callable[[], Any], what: str) -> Any:
    """What `holds` says once that is true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (said := holds()):
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)
    return said
