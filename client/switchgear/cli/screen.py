"""Output of commands: tables or JSON on standard output, errors on standard error."""

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
from switchgear.cli.formatters import Cell, cell

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType
    from rich.text import Text

PIPE_WIDTH = 160
"""Width of tables in a file or a pipe."""
TOPIC_WIDTH = 11
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
"""Characters that control a terminal, reverse the text direction or can't be encoded."""
INSTALL_HINT = (
    "Tables need the extra switchgear[cli]: in a checkout, pip install './client[cli]'."
    " Or use --json."
)


class Screen:
    """The output streams of a command, as tables for people or as JSON."""

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

    def check_tables(self) -> None:
        """Raise :class:`CommandExit` if tables must be printed and their package is missing."""
        if not self.as_json and importlib.util.find_spec("rich") is None:
            raise exits.make_exit(exits.USAGE, "not-installed", INSTALL_HINT)

    def document(self, document: Any) -> None:
        """Print a document as indented JSON."""
        self._write(self._out, _json(document, indent=2))

    def json_line(self, document: Any) -> None:
        """Print a document on one line. Raise :class:`BrokenPipeError` if the pipe is closed."""
        self._write(self._out, _json(document))
        self._check_reader()

    def line(self, *pieces: object) -> None:
        self._print(self._text(cell(*pieces)))

    def blank_line(self) -> None:
        self._write(self._out, "")

    def event(self, when: str, topic: str, content: Cell) -> None:
        """Print a change on one line. Raise :class:`BrokenPipeError` if the pipe is closed."""
        from rich.table import Table

        if not self._out.isatty():
            self._write(self._out, f"{when}  {topic:<{TOPIC_WIDTH}}  {content}")
            self._check_reader()
            return
        shown = Table.grid(padding=(0, 2, 0, 0))
        shown.add_column(style="dim", no_wrap=True)
        shown.add_column(no_wrap=True, min_width=TOPIC_WIDTH)
        shown.add_column(overflow="fold")
        shown.add_row(when, topic, self._text(content))
        self._print(shown)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table.

        The prefix `>` of a column name aligns the column right; `*` lets it wrap and use spare
        width.
        """
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
        """Print names and values, without those whose value is empty."""
        from rich.table import Table

        shown = Table.grid(padding=(0, 2, 0, 0))
        shown.add_column(style="dim", no_wrap=True)
        shown.add_column(overflow="fold")
        for name, value in pairs:
            content = cell(value)
            if content.parts:
                shown.add_row(f"  {name}", self._text(content))
        self._print(shown)

    def note(self, text: str) -> None:
        """Print a note to standard error, as `{"note": …}` if the format is JSON."""
        content = str(cell(text))
        self._write(self._err, _json({"note": content}) if self.as_json else content)

    def usage_error(self, usage: str, problem: Mapping[str, Any]) -> None:
        if not self.as_json:
            self._write(self._err, usage.rstrip())
        self.fail(problem, [str(problem["detail"])])

    def fail(self, problem: Mapping[str, Any], sentences: Sequence[str]) -> None:
        """Print an error on standard error: `sentences`, or if the format is JSON `problem`."""
        if self.as_json:
            self._write(self._err, _json(problem))
            return
        first, *others = sentences
        self._write(self._err, f"switchgear: {cell(first)}")
        for one in others:
            self._write(self._err, f"  {cell(one)}")

    @contextlib.contextmanager
    def progress(self) -> Iterator["ProgressLine"]:
        """Show progress on standard error: a bar on a terminal, otherwise lines."""
        if self.as_json or not self._err.isatty():
            yield ProgressLine(None if self.as_json else self)
            return
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[of]}"))
        console = self._make_console(self._err)
        with Bars(*columns, console=console, transient=True) as bars:
            yield ProgressLine(self, bars)

    def _print(self, shown: "RenderableType") -> None:
        if self._rich is None:
            self._rich = self._make_console(self._out)
        with self._rich.capture() as captured:
            self._rich.print(shown)
        self._write(self._out, "\n".join(map(str.rstrip, captured.get().splitlines())))

    def _make_console(self, stream: TextIO) -> "RichConsole":
        from rich.console import Console

        known = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
        return Console(
            file=stream,
            width=None if known else PIPE_WIDTH,
            no_color=True if not self._colour else None,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=False,
        )

    def _text(self, content: Cell) -> "Text":
        from rich.text import Text

        text = Text()
        for part in content.parts:
            text.append(part.text, STYLES[part.style])
        return text

    def _write(self, stream: TextIO, text: str) -> None:
        """Write a line to `stream`, standard output or standard error.

        Errors of standard error are ignored, and of standard output a closed pipe.
        """
        try:
            stream.write(f"{text}\n")
            stream.flush()
        except OSError as error:
            # Otherwise Python flushes again at exit and reports an error.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is self._out:
                self._is_read = False
                if not isinstance(error, BrokenPipeError):
                    raise

    def _check_reader(self) -> None:
        if not self._is_read:
            raise BrokenPipeError


class ProgressLine:
    """A display of a command's progress: a bar, lines, or nothing."""

    def __init__(self, screen: Screen | None, bars: Any = None) -> None:
        self._screen = screen
        self._bars = bars
        self._task: Any = None
        self._said = ""

    def update(self, what: str, done: float, total: float, of: str = "") -> None:
        """Show that `done` of `total` is completed; `of` says so, such as `3 of 4 instances`."""
        what, of = str(cell(what)), str(cell(of))
        if self._bars is not None:
            if self._task is None:
                self._task = self._bars.add_task("", total=1, of="")
            self._bars.update(
                self._task, description=what, completed=done, total=max(total, 1), of=of
            )
        elif self._screen is not None and self._said != (
            content := f"{what}: {of}" if of else what
        ):
            self._said = content
            self._screen.note(content)


def make_screen(*, as_json: bool, colour: bool) -> Screen:
    """Return a screen of standard output and standard error; a closed one writes to nowhere."""
    out, err = (stream or _open_devnull() for stream in (sys.stdout, sys.stderr))
    return Screen(as_json=as_json, out=out, err=err, colour=colour)


def _open_devnull() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _json(document: Any, indent: int | None = None) -> str:
    """Return JSON in which characters that control a terminal are escaped."""
    between = None if indent else (",", ":")
    written = json.dumps(document, ensure_ascii=False, indent=indent, separators=between)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
