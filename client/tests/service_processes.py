"""Services of a test: real processes that hold a client, called over real HTTP."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fake_console import TOKEN, Console

CLIENT = Path(__file__).resolve().parents[1]
EXAMPLES = CLIENT / "examples"
SERVICES = CLIENT / "tests" / "services"
PATIENCE_SECONDS = 60.0
_NOT_THEIRS = ("SWITCHGEAR_", "DJANGO_", "GRANIAN_", "GUNICORN_", "WEB_")


def environment(console: Console | None, state: Path, **more: str) -> dict[str, str]:
    """Return the environment of a service of this console, or of none."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_THEIRS)}
    told = {} if console is None else {"SWITCHGEAR_URL": console.url, "SWITCHGEAR_TOKEN": TOKEN}
    return {
        **clean,
        **told,
        "PYTHONPATH": f"{CLIENT}{os.pathsep}{SERVICES}",
        "XDG_STATE_HOME": str(state),
        **more,
    }


@contextlib.contextmanager
def running(
    module: str, *arguments: str, folder: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `python -m module …` during the block; its output is in `folder`."""
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
    """Return status and body; status 0 without an answer."""
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
