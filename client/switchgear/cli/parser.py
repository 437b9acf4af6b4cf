"""The command line: what there is, and how it is said."""

import argparse
import importlib
from collections.abc import Callable
from typing import Any

from switchgear import __version__
from switchgear.cli import exits
from switchgear.deciding.snapshot import is_switch

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

GROUPS = ("switches", "ramps", "breakers", "letters", "slos", "watching")


def parser() -> argparse.ArgumentParser:
    """Of the whole command."""
    whole = argparse.ArgumentParser(
        prog="switchgear",
        description=ABOUT,
        epilog=f"{EXAMPLES}\n\nexit codes:\n{exits.table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"switchgear {__version__}")
    _common(whole)
    whole.set_defaults(url=None, token_file=None, json=False, no_color=False)
    commands = Commands(whole.add_subparsers(metavar="COMMAND", title="commands", required=True))
    for name in GROUPS:
        importlib.import_module(f"switchgear.cli.commands.{name}").register(commands)
    return whole


class Commands:
    """Commands, or those of a group such as `ramp`, to which more can be added."""

    def __init__(self, parsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        self._parsers = parsers

    def add(
        self, name: str, run: Run, said: str, options: Options | None = None, more: str = ""
    ) -> None:
        """`said` is its line in the list, `more` what its own help says besides."""
        one = self._parser(name, said, more)
        if options is not None:
            options(one)
        one.set_defaults(run=run)

    def group(
        self, name: str, said: str, default: tuple[str, Run, str, Options] | None = None
    ) -> "Commands":
        """Commands of their own behind a name; `default` is meant if only the name is said."""
        one = self._parser(name, said, "")
        if default is not None:
            default[3](one)
            one.set_defaults(run=default[1])
        metavar = "COMMAND" if default is None else f"COMMAND ({default[0]})"
        inner = one.add_subparsers(metavar=metavar, title="commands", required=default is None)
        commands = Commands(inner)
        if default is not None:
            # What was said before its name counts, where it is not said again behind it.
            commands._silent = True
            commands.add(*default)
            commands._silent = False
        return commands

    _silent = False

    def _parser(self, name: str, said: str, more: str) -> argparse.ArgumentParser:
        one = self._parsers.add_parser(
            name,
            help=said,
            description=f"{said[0].upper()}{said[1:]}.{f' {more}' if more else ''}",
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS if self._silent else None,
        )
        _common(one)
        return one


def switch(text: str) -> str:
    """The id of a switch, as an argument's type."""
    found = "global:all" if text == "global" else text
    if not is_switch(found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no switch; write global, segment:finance, feature:chat or experiment:x"
        )
    return found


def of_type(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """An argument's type that says what a :class:`ValueError` says."""

    def typed(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return typed


def reason(one: argparse.ArgumentParser, said: str, *, required: bool = True) -> None:
    one.add_argument("--reason", required=required, metavar="TEXT", help=said)


def dry_run(one: argparse.ArgumentParser) -> None:
    one.add_argument("--dry-run", action="store_true", help="only say what would be")


def _common(one: argparse.ArgumentParser) -> None:
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
