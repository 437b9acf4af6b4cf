"""The command line: the parser, groups of commands and types of arguments."""

import argparse
import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, NoReturn

from switchgear import __version__
from switchgear.cli import exits
from switchgear.cli.formatting import duration_seconds
from switchgear.evaluation.snapshot import resolve_switch_id

Run = Callable[[Any], int]
Options = Callable[[argparse.ArgumentParser], None]

ABOUT = """\
The kill switch console from a shell: what is stopped, stop it, let it run again.

Set SWITCHGEAR_URL and SWITCHGEAR_TOKEN, or say --url and --token-file. A token is never
said on the command line. A switch is said as global, segment:finance, feature:chat or
experiment:new-ranker; a breaker as 'core->oracle' (in quotes) or core/oracle."""

EXAMPLES = """\
examples:
  switchgear status
  switchgear engage segment:finance --reason "Wrong figures in P&L answers" --for 4h --wait
  switchgear release segment:finance --reason "Fixed by deploy 412" --plan 5,25,100 --follow
  switchgear dlq retry axiom:dlq:events --fingerprint 3f2a… --reason "Fixed" --follow
  switchgear watch switches breakers"""

PIPES = "A reader that has enough (| head) changes no exit code; it ends `watch` with 0."
GROUPS = ("switches", "ramps", "breakers", "letters", "slos", "watch")


class UsageError(Exception):
    """The command line is wrong; `usage` is the syntax of the command."""

    def __init__(self, said: str, usage: str) -> None:
        super().__init__(said)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise :class:`UsageError`."""
        raise UsageError(message, self.format_usage())


@functools.cache
def build_parser() -> Parser:
    """Return the parser, which raises :class:`UsageError` for a wrong command line."""
    whole = Parser(
        prog="switchgear",
        description=ABOUT,
        epilog=f"{EXAMPLES}\n\nexit codes:\n{exits.format_exit_codes()}\n{PIPES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"switchgear {__version__}")
    _add_common(whole)
    whole.set_defaults(url=None, token_file=None, json=False, no_color=False)
    commands = Commands(whole.add_subparsers(metavar="COMMAND", title="commands", required=True))
    for name in GROUPS:
        importlib.import_module(f"switchgear.cli.commands.{name}").register(commands)
    return whole


class Commands:
    """A list of commands, or of those of a group such as `ramp`."""

    def __init__(self, parsers: "argparse._SubParsersAction[Parser]") -> None:
        self._parsers = parsers

    def add(
        self, name: str, run: Run, said: str, options: Options | None = None, more: str = ""
    ) -> None:
        """Add a command; `said` is its line in the list, `more` is added to its own help."""
        self._add(self._parser(name, said, more), run, options)

    def group(
        self, name: str, said: str, default: tuple[str, Run, str, Options] | None = None
    ) -> "Commands":
        """Add a group of commands; `default` runs if only the group is named."""
        one = self._parser(name, said)
        if default is not None:
            self._add(one, default[1], default[3])
        metavar = "COMMAND" if default is None else f"COMMAND ({default[0]})"
        inner = one.add_subparsers(metavar=metavar, title="commands", required=default is None)
        commands = Commands(inner)
        if default is not None:
            # What was said before its name counts, where it is not said again behind it.
            named, run, about, options = default
            self._add(commands._parser(named, about, absent=argparse.SUPPRESS), run, options)
        return commands

    def _add(self, one: Parser, run: Run, options: Options | None) -> None:
        if options is not None:
            options(one)
        one.set_defaults(run=run)

    def _parser(self, name: str, said: str, more: str = "", absent: str | None = None) -> Parser:
        """Add a parser; `absent` is the value of an option that is not given."""
        one = self._parsers.add_parser(
            name,
            help=said,
            description=f"{said[0].upper()}{said[1:]}.{f' {more}' if more else ''}",
            allow_abbrev=False,
            argument_default=absent,
        )
        _add_common(one)
        return one


def parse_switch(text: str) -> str:
    """Return the id of a switch, as an argument's type."""
    try:
        return resolve_switch_id(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no switch; write global, segment:finance, feature:chat or experiment:x"
        ) from None


def argument_type(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return an argument's type that shows the message of a :class:`ValueError`."""

    def typed(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return typed


def add_reason(one: argparse.ArgumentParser, said: str, *, required: bool = True) -> None:
    one.add_argument("--reason", required=required, metavar="TEXT", help=said)


def parse_duration(text: str) -> str:
    """Return a duration as the API takes it, or `permanent`."""
    if text != "permanent":
        duration_seconds(text)
    return text


def parse_count(text: str) -> int:
    """Return a positive whole number. Raise :class:`ValueError`."""
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not found:
        raise ValueError("write a whole number above 0")
    return found


def parse_rate(text: str) -> float:
    """Return a positive number per second. Raise :class:`ValueError`."""
    found = float(text)
    if not math.isfinite(found) or found <= 0:
        raise ValueError("write how many a second, such as 50 or 0.5")
    return found


def add_break_glass(one: argparse.ArgumentParser, said: str) -> None:
    """Add the options that override safety rules."""
    one.add_argument("--break-glass", action="append", metavar="RULE", help=said)
    one.add_argument("--break-glass-reason", metavar="TEXT", help="why; --reason if not said")


def read_break_glass(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the given overrides as the API takes them. Raise :class:`exits.CommandExit`."""
    if args.break_glass:
        return {"rule": args.break_glass, "reason": args.break_glass_reason or args.reason}
    if args.break_glass_reason is not None:
        said = "--break-glass-reason needs --break-glass RULE: which rule is overridden?"
        raise exits.make_exit(exits.USAGE, "usage", said)
    return None


def add_dry_run(one: argparse.ArgumentParser) -> None:
    one.add_argument("--dry-run", action="store_true", help="only say what would be")


def _add_common(one: argparse.ArgumentParser) -> None:
    shared = one.add_argument_group("console and output")
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    shared.add_argument("--url", metavar="URL", help="instead of SWITCHGEAR_URL", **absent)
    shared.add_argument(
        "--token-file", metavar="FILE", help="a file that holds the token", **absent
    )
    shared.add_argument(
        "--json",
        action="store_true",
        help="print the API's documents, and errors as such",
        **absent,
    )
    shared.add_argument("--no-color", action="store_true", help="as NO_COLOR=1", **absent)
