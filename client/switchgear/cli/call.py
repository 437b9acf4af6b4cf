"""One command at work: its arguments, the console it asks, and the screen it answers on."""

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from switchgear.cli import exits
from switchgear.cli.console import Console, Document
from switchgear.cli.screen import Screen
from switchgear.cli.words import Clock

PATIENCE_SECONDS = 60.0
"""So long a console may be away while something is followed."""
LONGEST_TOKEN = 1000


@dataclass(frozen=True)
class Call:
    args: argparse.Namespace
    screen: Screen

    @cached_property
    def console(self) -> Console:
        """Raises :class:`exits.Ended` if it is not said where it is, or who asks."""
        url = self.args.url or os.environ.get("SWITCHGEAR_URL")
        if not url:
            said = "Say where the console is: set SWITCHGEAR_URL, or add --url https://…"
            raise exits.ended(exits.USAGE, "no-url", said)
        return Console(url, self._token())

    @property
    def clock(self) -> Clock:
        return Clock(self.console.now)

    def close(self) -> None:
        """Let the connection go, if there is one."""
        if "console" in self.__dict__:
            self.console.close()

    def show(self, document: Any) -> bool:
        """Print it if documents are wanted; else it is for the caller to say in words."""
        if self.screen.as_json:
            self.screen.document(document)
        return self.screen.as_json

    def following(self, path: str, every_seconds: float = 1.0) -> Iterator[Document]:
        """The resource as it stands now, and again and again. A console that is away meanwhile is
        waited for, a minute at most."""
        heard, told = time.monotonic(), False
        while True:
            try:
                document = self.console.get(path)
            except exits.Ended as end:
                away = end.code == exits.UNREACHABLE
                if not away or time.monotonic() - heard > PATIENCE_SECONDS:
                    raise
                if not told and not self.screen.as_json:
                    self.screen.note(f"{end} Still waiting.")
                told = True
            else:
                heard, told = time.monotonic(), False
                yield document
            time.sleep(every_seconds)

    def _token(self) -> str:
        """Never from the command line, which everybody on the machine can read."""
        file = self.args.token_file
        if file is None:
            token = os.environ.get("SWITCHGEAR_TOKEN", "")
        else:
            try:
                with Path(file).open(encoding="ascii") as opened:
                    token = opened.read(LONGEST_TOKEN)
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it holds no token"
                said = f"The token file {file} can't be read: {why}."
                raise exits.ended(exits.NO_RIGHTS, "no-token", said) from None
        if token.strip():
            return token.strip()
        said = "Say who asks: set SWITCHGEAR_TOKEN, or add --token-file FILE."
        raise exits.ended(exits.NO_RIGHTS, "no-token", said)
