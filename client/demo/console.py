"""The switches and ramps in the console, as sentences for the terminal."""

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from demo import world
from switchgear import Change
from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.transport import Connection

READ_SECONDS = 0.8
"""Limit of one response; the supervisor waits three seconds for core and its final report."""
REASON = "The demo is over"

Rows = Sequence[Mapping[str, Any]]


def read_rows(path: str, **filters: str) -> Rows:
    """Return the first page of a list in the console's API.

    Raise :class:`RequestFailed` if it is not there within `READ_SECONDS`, :class:`OSError` without
    a token.
    """
    address = Address.parse(os.environ["SWITCHGEAR_URL"])
    connection = Connection(address, world.read_token())
    try:
        response = connection.request(
            "GET", f"/api/v1/{path}/?{urlencode(filters)}", seconds=READ_SECONDS
        )
        return [dict(row) for row in json.loads(response.expect(200).body)["results"]]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise RequestFailed("the response is not a list of the console's API") from error
    finally:
        connection.close()


def describe_change(change: Change, read: Callable[..., Rows] = read_rows) -> str:
    """Return a sentence about a changed switch, with the reason if its ramp was aborted."""
    if change.after == "ramping":
        return f"{change.switch} is ramping: {change.allow_percent:g} % of its traffic is allowed"
    if change.before == "ramping" and change.after == "engaged":
        try:
            ramps = read("ramps", switch=change.switch)[:1]
        except (OSError, RequestFailed) as error:
            return f"{change.switch} is engaged again; its ramp can't be read: {error}"
        if ramps and ramps[0]["compensated_at"]:
            why = ramps[0]["error"]  # Such as "A gate failed: …".
            return f"the ramp of {change.switch} was aborted, so it is engaged again: {why}"
    return f"{change.switch} is {change.after}"


def describe_leftovers(read: Callable[..., Rows] = read_rows) -> str:
    """Return lines about the switches that stay engaged or ramping; empty if there are none."""
    try:
        switches = [*read("switches", state="engaged"), *read("switches", state="ramping")]
    except (OSError, RequestFailed) as error:
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
