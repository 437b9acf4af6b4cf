"""One command at work: its arguments, the console it asks, and the screen it answers on."""

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
from switchgear.cli.console import SECONDS, Console, Document
from switchgear.cli.intervals import Intervals
from switchgear.cli.screen import Screen
from switchgear.cli.words import Clock

PATIENCE_SECONDS = 60.0
"""So long a console may be away while something is followed."""
MAX_TOKEN_LENGTH = 1000


@dataclass(frozen=True)
class Call:
    args: argparse.Namespace
    screen: Screen
    intervals: Intervals

    @cached_property
    def console(self) -> Console:
        """Raises :class:`exits.Ended` if it is not said where it is, or who asks."""
        url = self.args.url or os.environ.get("SWITCHGEAR_URL")
        if not url:
            said = "Say where the console is: set SWITCHGEAR_URL, or add --url https://…"
            raise exits.ended(exits.USAGE, "no-url", said)
        return Console(url, self._token(), self.intervals.retry)

    @property
    def clock(self) -> Clock:
        return Clock(self.console.now)

    @property
    def has_changed(self) -> bool:
        """Whether the console said yes to a change."""
        return "console" in self.__dict__ and self.console.has_changed

    def misread(self, error: Exception) -> exits.Ended:
        """Why an answer could not be read, or what was written not be sent."""
        if isinstance(error, UnicodeEncodeError):
            said = "What was written is not UTF-8: nothing was sent. Write it in UTF-8."
            return exits.ended(exits.USAGE, "not-utf-8", said)
        if "console" not in self.__dict__:
            raise error
        return self.console.strange()

    def close(self) -> None:
        """Let the connection go, if there is one."""
        if "console" in self.__dict__:
            self.console.close()

    def show(self, document: Any) -> bool:
        """Print it if documents are wanted; else it is for the caller to say in words."""
        if self.screen.as_json:
            self.screen.document(document)
        return self.screen.as_json

    @contextmanager
    def unless_lost(self, tell: Callable[[], None] | None, said: str) -> Iterator[None]:
        """While something is followed that was done just before: whatever ends this, what was done
        is told first, by `tell`. `said` begins the sentence of why it could not be followed."""
        try:
            yield
        except (exits.Ended, *exits.STRANGE) as error:
            if tell is None:
                raise
            tell()
            end = error if isinstance(error, exits.Ended) else self.misread(error)
            raise exits.unfinished(end, said) from None
        except KeyboardInterrupt:
            if tell is not None:
                tell()
            raise

    def following(
        self, path: str, every_seconds: float | None = None, until: float | None = None
    ) -> Iterator[Document]:
        """The resource as it stands now, and again and again. A console that is away meanwhile, or
        asks for patience, is waited for: until that monotonic time, or for a minute."""
        heard, told = time.monotonic(), False
        every = self.intervals.follow if every_seconds is None else every_seconds
        while True:
            pause = every
            last = heard + PATIENCE_SECONDS if until is None else until
            left = last - time.monotonic()
            try:
                document = self.console.get(path, seconds=min(SECONDS, max(1.0, left)))
            except exits.Ended as end:
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

    def _token(self) -> str:
        """Never from the command line, which everybody on the machine can read."""
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
                raise exits.ended(exits.NO_RIGHTS, "no-token", said) from None
        if token.strip():
            return token.strip()
        said = "Say who asks: set SWITCHGEAR_TOKEN, or add --token-file FILE."
        raise exits.ended(exits.NO_RIGHTS, "no-token", said)
