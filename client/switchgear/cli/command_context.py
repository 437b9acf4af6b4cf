"""The context of a command: its arguments, the API client and the screen."""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from switchgear.cli import exits
from switchgear.cli.api_client import REQUEST_SECONDS, ApiClient, Document, Query
from switchgear.cli.formatters import Clock
from switchgear.cli.screen import Screen

MAX_OUTAGE_SECONDS = 60.0
"""Longest outage of the console during which a command keeps following a ramp or a job."""
MAX_TOKEN_LENGTH = 1000


@dataclass(frozen=True)
class Intervals:
    """The pauses of CLI commands between requests, in seconds. Tests use shorter pauses."""

    retry: float = 0.5
    """Pause before a request is retried."""
    follow: float = 1.0
    """Pause between two reads of a ramp or a job."""
    prove: float = 0.5
    """Pause between two checks if all instances apply a change."""
    poll: float = 5.0
    """Pause between two polls by `watch` without a live socket."""
    reconnect: float = 0.5
    """Maximum of the first pause before `watch` reopens its socket."""


@dataclass(frozen=True)
class CommandContext:
    """The arguments, screen and API client of one command."""

    args: argparse.Namespace
    screen: Screen
    intervals: Intervals

    @cached_property
    def console(self) -> ApiClient:
        """The API client; its use without URL or token raises :class:`exits.CommandExit`."""
        url = self.args.url or os.environ.get("SWITCHGEAR_URL")
        if not url:
            detail = "No console URL given. Set SWITCHGEAR_URL, or add --url https://…"
            raise exits.make_exit(exits.USAGE, "no-url", detail)
        return ApiClient(url, self.read_token(), self.intervals.retry)

    @property
    def clock(self) -> Clock:
        return Clock(self.console.now)

    @property
    def has_changed(self) -> bool:
        """True once the console accepted a change."""
        return "console" in self.__dict__ and self.console.has_changed

    def explain_misread(self, error: Exception) -> exits.CommandExit:
        """Return the exit for an `error` of decoding or encoding text.

        The cause is input that is not UTF-8, or an unreadable response of the console.
        """
        if isinstance(error, UnicodeEncodeError):
            detail = "The command line contains text that is not valid UTF-8. Nothing was sent."
            return exits.make_exit(exits.USAGE, "not-utf-8", detail)
        if "console" not in self.__dict__:
            raise error
        return self.console.unexpected_answer()

    def close(self) -> None:
        if "console" in self.__dict__:
            self.console.close()

    def print_json(self, document: Any) -> bool:
        """Print the document if the output format is JSON; return True if it was printed."""
        if self.screen.as_json:
            self.screen.document(document)
        return self.screen.as_json

    def send(self, method: str, path: str, body: Query, query: Query | None = None) -> Document:
        """Send a change and return the console's answer; with `--dry-run` nothing is changed."""
        dry_run = getattr(self.args, "dry_run", False) or None
        return self.console.send(method, path, {**body, "dry_run": dry_run}, query)

    @contextmanager
    def report_if_lost(
        self, print_change: Callable[[], None] | None, message: str
    ) -> Iterator[None]:
        """Context manager: run code, such as showing progress, after the console accepted a change.

        If the code fails, the change itself has succeeded: `print_change` is called, and the exit
        that is raised begins with `message`. Without `print_change`, the error is raised unchanged.
        """
        try:
            yield
        except (exits.CommandExit, *exits.MISREAD_ERRORS) as error:
            if print_change is None:
                raise
            print_change()
            end = error if isinstance(error, exits.CommandExit) else self.explain_misread(error)
            cause = dict(end.problem)
            detail = f"{message} {end}"
            raise exits.make_exit(exits.FAILED, "not-followed", detail, cause=cause) from None
        except KeyboardInterrupt:
            if print_change is not None:
                print_change()
            raise

    def poll(
        self, path: str, every_seconds: float | None = None, until: float | None = None
    ) -> Iterator[Document]:
        """Yield the resource at `path` now, and again every `every_seconds`.

        If the console is unavailable or its response demands a later retry, keep trying: until the
        monotonic time `until` if given, otherwise for a minute after the last good response.
        """
        answered_at, noted = time.monotonic(), False
        every = self.intervals.follow if every_seconds is None else every_seconds
        while True:
            pause = every
            last = answered_at + MAX_OUTAGE_SECONDS if until is None else until
            left = last - time.monotonic()
            try:
                document = self.console.get(path, seconds=min(REQUEST_SECONDS, max(1.0, left)))
            except exits.CommandExit as end:
                waits = end.code == exits.UNREACHABLE or end.retry_seconds is not None
                left = last - time.monotonic()
                if not waits or left <= 0:
                    raise
                if not noted and not self.screen.as_json:
                    self.screen.note(f"{end} Retrying.")
                noted = True
                pause = min(max(every, end.retry_seconds or 0.0), left)
            else:
                answered_at, noted = time.monotonic(), False
                yield document
            time.sleep(pause)

    def read_token(self) -> str:
        """Return the token from a file or the environment.

        It can't be given on the command line, which other users of the machine can read.
        """
        file = self.args.token_file
        if file is None:
            token = os.environ.get("SWITCHGEAR_TOKEN", "")
        else:
            try:
                with Path(file).open(encoding="ascii") as opened:
                    token = opened.read(MAX_TOKEN_LENGTH)
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it contains no token"
                detail = f"The token file {file} can't be read: {why}."
                raise exits.make_exit(exits.NO_RIGHTS, "no-token", detail) from None
        if token.strip():
            return token.strip()
        detail = "No API token given. Set SWITCHGEAR_TOKEN, or add --token-file FILE."
        raise exits.make_exit(exits.NO_RIGHTS, "no-token", detail)
