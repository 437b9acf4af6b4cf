"""The context of one command: its arguments, the console's API and the output."""

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
from switchgear.cli.api_client import REQUEST_SECONDS, ApiClient, Document
from switchgear.cli.formatting import Clock
from switchgear.cli.screen import Screen

MAX_OUTAGE_SECONDS = 60.0
"""Longest outage of the console while something is followed."""
MAX_TOKEN_LENGTH = 1000


@dataclass(frozen=True)
class Intervals:
    """Pauses in seconds. Tests use shorter ones."""

    retry: float = 0.5
    """Before a request is retried."""
    follow: float = 1.0
    """Between two reads of a ramp or a job."""
    prove: float = 0.5
    """Between two checks of the instances that apply a change."""
    poll: float = 5.0
    """Between two reads by `watch` without a live socket."""
    reconnect: float = 0.5
    """Longest first pause before `watch` opens its next socket."""


@dataclass(frozen=True)
class CommandContext:
    args: argparse.Namespace
    screen: Screen
    intervals: Intervals

    @cached_property
    def console(self) -> ApiClient:
        """The API client. Raise :class:`exits.CommandExit` if the URL or the token is missing."""
        url = self.args.url or os.environ.get("SWITCHGEAR_URL")
        if not url:
            said = "Say where the console is: set SWITCHGEAR_URL, or add --url https://…"
            raise exits.make_exit(exits.USAGE, "no-url", said)
        return ApiClient(url, self._read_token(), self.intervals.retry)

    @property
    def clock(self) -> Clock:
        return Clock(self.console.now)

    @property
    def has_changed(self) -> bool:
        """True once the console accepted a change."""
        return "console" in self.__dict__ and self.console.has_changed

    def explain_misread(self, error: Exception) -> exits.CommandExit:
        """Return the exit for an answer that could not be read, or input that could not be sent."""
        if isinstance(error, UnicodeEncodeError):
            said = "What was written is not UTF-8: nothing was sent. Write it in UTF-8."
            return exits.make_exit(exits.USAGE, "not-utf-8", said)
        if "console" not in self.__dict__:
            raise error
        return self.console.unexpected_answer()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if "console" in self.__dict__:
            self.console.close()

    def print_json(self, document: Any) -> bool:
        """Print the document and return True if documents are wanted; else return False."""
        if self.screen.as_json:
            self.screen.document(document)
        return self.screen.as_json

    @contextmanager
    def report_if_lost(self, tell: Callable[[], None] | None, said: str) -> Iterator[None]:
        """Run a block that follows a change just made.

        If it ends early, `tell` first prints the change; `said` begins the sentence that explains
        why it could not be followed.
        """
        try:
            yield
        except (exits.CommandExit, *exits.MISREAD_ERRORS) as error:
            if tell is None:
                raise
            tell()
            end = error if isinstance(error, exits.CommandExit) else self.explain_misread(error)
            raise exits.make_unfinished_exit(end, said) from None
        except KeyboardInterrupt:
            if tell is not None:
                tell()
            raise

    def poll(
        self, path: str, every_seconds: float | None = None, until: float | None = None
    ) -> Iterator[Document]:
        """Yield the resource now and after each interval.

        Wait for a console that is unavailable or asks for a later retry: until the monotonic time
        `until`, or for a minute.
        """
        heard, told = time.monotonic(), False
        every = self.intervals.follow if every_seconds is None else every_seconds
        while True:
            pause = every
            last = heard + MAX_OUTAGE_SECONDS if until is None else until
            left = last - time.monotonic()
            try:
                document = self.console.get(path, seconds=min(REQUEST_SECONDS, max(1.0, left)))
            except exits.CommandExit as end:
                waits = end.code == exits.UNREACHABLE or end.retry_seconds is not None
                left = last - time.monotonic()
                if not waits or left <= 0:
                    raise
                if not told and not self.screen.as_json:
                    self.screen.note(f"{end} Still waiting.")
                told = True
                pause = min(max(every, end.retry_seconds or 0.0), left)
            else:
                heard, told = time.monotonic(), False
                yield document
            time.sleep(pause)

    def _read_token(self) -> str:
        """Return the token.

        It is never taken from the command line, which other users of the machine can read.
        """
        file = self.args.token_file
        if file is None:
            token = os.environ.get("SWITCHGEAR_TOKEN", "")
        else:
            try:
                with Path(file).open(encoding="ascii") as opened:
                    token = opened.read(MAX_TOKEN_LENGTH)
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it holds no token"
                said = f"The token file {file} can't be read: {why}."
                raise exits.make_exit(exits.NO_RIGHTS, "no-token", said) from None
        if token.strip():
            return token.strip()
        said = "Say who asks: set SWITCHGEAR_TOKEN, or add --token-file FILE."
        raise exits.make_exit(exits.NO_RIGHTS, "no-token", said)
