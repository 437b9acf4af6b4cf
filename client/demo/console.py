"""The switches and ramps in the console, as sentences for the terminal."""

import json
import os
import shlex
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from demo import world
from switchgear import Change

READ_SECONDS = 1.5
REASON = "The demo is over"

Rows = Sequence[Mapping[str, Any]]


def read_rows(path: str, **filters: str) -> Rows:
    """Return the first page of a list in the console's API; raise :class:`OSError` without one."""
    request = urllib.request.Request(  # noqa: S310
        f"{os.environ['SWITCHGEAR_URL']}/api/v1/{path}/?{urlencode(filters)}",
        headers={"Authorization": f"Bearer {world.read_token()}"},
    )
    with urllib.request.urlopen(request, timeout=READ_SECONDS) as response:  # noqa: S310
        rows: Rows = json.load(response)["results"]
    return rows


def describe_change(change: Change, read: Callable[..., Rows] = read_rows) -> str:
    """Return a sentence about a changed switch, with the reason if its ramp was aborted."""
    if change.after == "ramping":
        return f"{change.switch} is ramping: {change.allow_percent:g} % of its traffic is allowed"
    if change.before == "ramping" and change.after == "engaged":
        try:
            ramps = read("ramps", switch=change.switch)[:1]
        except OSError as error:
            return f"{change.switch} is engaged again; its ramp can't be read: {error}"
        if ramps and ramps[0]["compensated_at"]:
            why = ramps[0]["error"]  # Such as "A gate failed: …".
            return f"the ramp of {change.switch} was aborted, so it is engaged again: {why}"
    return f"{change.switch} is {change.after}"


def describe_leftovers(read: Callable[..., Rows] = read_rows) -> str:
    """Return lines about the switches that stay engaged or ramping; empty if there are none."""
    try:
        switches = [*read("switches", state="engaged"), *read("switches", state="ramping")]
    except OSError as error:
        return f"the console did not say which switches are still engaged: {error}"
    if not switches:
        return ""
    releases = format_releases(switches)
    return f"{describe_engaged(switches)}. To release, after the next start:\n{releases}"


def describe_engaged(switches: Rows) -> str:
    names = (f"{switch['id']} ({switch['state']})" for switch in switches)
    return f"still engaged: {', '.join(names)}"


def format_releases(switches: Rows) -> str:
    """Return the commands that release the switches, one a line."""
    return "\n".join(map(_format_release, switches))


def _format_release(switch: Mapping[str, Any]) -> str:
    scope, _, key = switch["id"].partition(":")
    options = ["--global"] if scope == "global" else [f"--{scope}", key]
    command = ("killswitch", "release", *options, "--mode", "immediate", "--reason", REASON)
    return f".venv/bin/python manage.py {shlex.join(command)}"
