"""Creates the demo's tokens, SLOs and policies by `manage.py`; repeating it is harmless."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from demo import console, load, scenario

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = Path(__file__).with_name("config")
NAME, RELAYS_NAME = "demo", "demo-relays"
SCOPES, RELAYS_SCOPES = "switches:read,report:write", "relay"
LASTS_DAYS = 90
RENEWED_DAYS = 60


def main(token_file: Path, relays_file: Path | None = None) -> None:
    """Prepare the demo; write its token, and that of relays to `relays_file`, if it has any."""
    try:
        load.parse_rate(os.environ.get("DEMO_RATE", ""))
        scenario.parse_scenario(os.environ.get("DEMO_SCENARIO", ""))
    except ValueError as wrong:
        sys.exit(str(wrong))
    run_manage("config", "load", "--keep-edited", str(CONFIG.relative_to(ROOT)))
    create_token(token_file, NAME, SCOPES)
    if relays_file is not None:
        create_token(relays_file, RELAYS_NAME, RELAYS_SCOPES)
    if engaged := json.loads(run_manage("killswitch", "list", "--json")):
        print(describe_earlier(engaged))  # noqa: T201


def create_token(file: Path, name: str, scopes: str) -> None:
    """Create a token and write it, unless that of an earlier run is usable."""
    if not is_token_usable(file):
        lasting = ("--expires", f"{LASTS_DAYS}d")
        token = run_manage("token", "create", name, "--scopes", scopes, *lasting)
        write_token(file, token.strip().splitlines()[-1])


def describe_earlier(engaged: console.Rows) -> str:
    """Return lines that name the switches which an earlier run left, and how to release them."""
    switches, releases = console.describe_engaged(engaged), console.format_releases(engaged)
    return f"From an earlier run, {switches}. To release, once the demo is ready:\n{releases}"


def run_manage(*arguments: str) -> str:
    """Run a `manage.py` command and return its output; exit with its error message if it fails."""
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"manage.py {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def is_token_usable(token_file: Path) -> bool:
    """Return True if the stored token of an earlier run is recent, and active in the console."""
    try:
        token, written = token_file.read_text(), token_file.stat().st_mtime
    except FileNotFoundError:
        return False
    prefix = token.strip().removeprefix("sg_").partition("_")[0]
    is_recent = time.time() - written < RENEWED_DAYS * 86_400
    rows = (row.split() for row in run_manage("token", "list").splitlines())
    return is_recent and any(row[:2] == [prefix, "active"] for row in rows)


def write_token(token_file: Path, token: str) -> None:
    """Write the token atomically, readable by this user only."""
    token_file.parent.mkdir(mode=0o700, exist_ok=True)
    draft = token_file.with_name(f".{token_file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    draft.replace(token_file)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
