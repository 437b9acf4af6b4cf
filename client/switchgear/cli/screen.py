"""What is printed: tables for people, the API's documents for programs, and errors beside them."""

import contextlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from switchgear.cli import exits
from switchgear.cli.words import Cell, cell

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType
    from rich.text import Text

PIPE_COLUMNS = 160
"""Of tables that go into a file or a pipe, where nobody knows the width."""
TOPIC_COLUMNS = 11
STYLES: Mapping[str, str] = {
    "": "",
    "bad": "bold red",
    "alarm": "bold white on red",
    "warn": "yellow",
    "good": "green",
    "quiet": "dim",
    "strong": "bold",
    "name": "bold cyan",
}
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys, or turns lines by, or can't be written at all."""
INSTALL = "Tables need one more package: pip install 'switchgear[cli]' (or use --json)."


class Screen:
    """Standard output for what was asked for, standard error for all else."""

    def __init__(self, *, as_json: bool, out: TextIO, err: TextIO, colour: bool = True) -> None:
        self.as_json = as_json
        self._out = out
        self._err = err
        self._colour = colour
        self._rich: RichConsole | None = None
        self._is_read = True
        for stream in (out, err):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="replace")  # type: ignore[attr-defined]

    def check(self) -> None:
        """Before anything is asked for: that its answer can be shown. Raises :class:`Ended`."""
        if not self.as_json and importlib.util.find_spec("rich") is None:
            raise exits.ended(exits.USAGE, "not-installed", INSTALL)

    def document(self, document: Any) -> None:
        """The API's document, as JSON."""
        self._write(self._out, _json(document, indent=2))

    def json_line(self, document: Any) -> None:
        """Raises :class:`BrokenPipeError` once nobody reads any more."""
        self._write(self._out, _json(document))
        self._go_on()

    def line(self, *pieces: object) -> None:
        self._print(self._text(cell(*pieces)))

    def gap(self) -> None:
        self._write(self._out, "")

    def event(self, when: str, topic: str, said: Cell) -> None:
        """One line; on a terminal too narrow for it, what goes on is indented. Raises
        :class:`BrokenPipeError` once nobody reads any more."""
        from rich.table import Table

        if not self._out.isatty():
            self._write(self._out, f"{when}  {topic:<{TOPIC_COLUMNS}}  {said}")
            self._go_on()
            return
        shown = Table.grid(padding=(0, 2, 0, 0))
        shown.add_column(style="dim", no_wrap=True)
        shown.add_column(no_wrap=True, min_width=TOPIC_COLUMNS)
        shown.add_column(overflow="fold")
        shown.add_row(when, topic, self._text(said))
        self._print(shown)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A column whose name begins with `>` is aligned to the right, one with `*` takes the room
        that is left."""
        from rich.table import Table

        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for column in columns:
            flexible = column.startswith("*")
            shown.add_column(
                column.lstrip(">*"),
                justify="right" if column.startswith(">") else "left",
                overflow="fold",
                no_wrap=not flexible,
                min_width=min(16, len(column)) if flexible else None,
            )
        for row in rows:
            shown.add_row(*(self._text(cell(one)) for one in row))
        self._print(shown)

    def facts(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Names and values; those without a value are left out."""
        from rich.table import Table

        shown = Table.grid(padding=(0, 2, 0, 0))
        shown.add_column(style="dim", no_wrap=True)
        shown.add_column(overflow="fold")
        for name, value in pairs:
            said = cell(value)
            if said.parts:
                shown.add_row(f"  {name}", self._text(said))
        self._print(shown)

    def note(self, text: str) -> None:
        """Beside the answer: on standard error, as `{"note": …}` where documents are wanted."""
        said = str(cell(text))
        self._write(self._err, _json({"note": said}) if self.as_json else said)

    def misused(self, usage: str, problem: Mapping[str, Any]) -> None:
        """A command line that is wrong."""
        if not self.as_json:
            self._write(self._err, usage.rstrip())
        self.fail(problem, [str(problem["detail"])])

    def fail(self, problem: Mapping[str, Any], sentences: Sequence[str]) -> None:
        """Why it ends: in sentences, or as the problem document."""
        if self.as_json:
            self._write(self._err, _json(problem))
            return
        first, *others = sentences
        self._write(self._err, f"switchgear: {cell(first)}")
        for one in others:
            self._write(self._err, f"  {cell(one)}")

    @contextlib.contextmanager
    def progress(self) -> Iterator["Progress"]:
        """How far it has come, on standard error: a bar on a terminal, else lines."""
        if self.as_json or not self._err.isatty():
            yield Progress(None if self.as_json else self)
            return
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[of]}"))
        console = self._made(self._err)
        with Bars(*columns, console=console, transient=True) as bars:
            yield Progress(self, bars)

    def _print(self, shown: "RenderableType") -> None:
        """Without the spaces that fill a line to its end."""
        if self._rich is None:
            self._rich = self._made(self._out)
        with self._rich.capture() as captured:
            self._rich.print(shown)
        self._write(self._out, "\n".join(map(str.rstrip, captured.get().splitlines())))

    def _made(self, stream: TextIO) -> "RichConsole":
        from rich.console import Console

        known = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
        return Console(
            file=stream,
            width=None if known else PIPE_COLUMNS,
            no_color=True if not self._colour else None,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=False,
        )

    def _text(self, said: Cell) -> "Text":
        from rich.text import Text

        text = Text()
        for part in said.parts:
            text.append(part.text, STYLES[part.style])
        return text

    def _write(self, stream: TextIO, text: str) -> None:
        """A command goes on to its end, and its exit code, when its reader has enough. Any other
        :class:`OSError` of standard output is raised."""
        try:
            stream.write(f"{text}\n")
            stream.flush()
        except OSError as error:
            # Python would flush once more at its end, and complain.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is self._out:
                self._is_read = False
                if not isinstance(error, BrokenPipeError):
                    raise

    def _go_on(self) -> None:
        if not self._is_read:
            raise BrokenPipeError


class Progress:
    """One line that tells how far something has come."""

    def __init__(self, screen: Screen | None, bars: Any = None) -> None:
        self._screen = screen
        self._bars = bars
        self._task: Any = None
        self._said = ""

    def tell(self, what: str, done: float, total: float, of: str = "") -> None:
        """`of` stands behind the bar: `3 of 4 instances`."""
        what, of = str(cell(what)), str(cell(of))
        if self._bars is not None:
            if self._task is None:
                self._task = self._bars.add_task("", total=1, of="")
            self._bars.update(
                self._task, description=what, completed=done, total=max(total, 1), of=of
            )
        elif self._screen is not None and self._said != (said := f"{what}: {of}" if of else what):
            self._said = said
            self._screen.note(said)


def standard(*, as_json: bool, colour: bool) -> Screen:
    """Of this process; an output that is closed (`>&-`) takes all and shows nothing."""
    out, err = (stream or _nowhere() for stream in (sys.stdout, sys.stderr))
    return Screen(as_json=as_json, out=out, err=err, colour=colour)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _json(document: Any, indent: int | None = None) -> str:
    """Letters as letters, but for what must not reach a terminal."""
    between = None if indent else (",", ":")
    written = json.dumps(document, ensure_ascii=False, indent=indent, separators=between)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
