"""The command `ofrep-conformance`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import __version__
from .manifest import (
    Manifest,
    ManifestError,
    add_flags,
    load_manifest,
    parse_flag_option,
    parse_manifest,
    validate,
)
from .registry import CHECKS, CheckResult, Level, Verdict
from .reports import (
    count_failures,
    format_json,
    format_junit,
    format_result,
    format_summary,
)
from .runner import require_answer, run_checks
from .session import NoResponse

EPILOG = "Exit code: 0 if the server conforms, 1 if a check failed, 2 if no check could be run."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.list:
        for check in CHECKS.values():
            sys.stdout.write(f"{check.level:<6}  {check.id:<30}  {check.requirement}\n")
        return 0
    try:
        manifest = make_manifest(options)
        unknown = sorted({*options.only, *options.skip} - CHECKS.keys())
        if unknown:
            raise ManifestError(f"Unknown check: {', '.join(unknown)}. To list all checks: --list")
        require_answer(manifest)
    except (ManifestError, NoResponse) as error:
        sys.stderr.write(f"ofrep-conformance: {error}\n")
        return 2
    selected = {*(options.only or CHECKS)} - {*options.skip}
    results = run_and_report(manifest, selected, options)
    levels = (Level.MUST, Level.SHOULD) if options.strict else (Level.MUST,)
    return 1 if count_failures(results, *levels) else 0


def run_and_report(
    manifest: Manifest, selected: set[str], options: argparse.Namespace
) -> list[CheckResult]:
    """Run the selected checks, write the reports, and return the results."""
    results = []
    for result in run_checks(manifest, selected):
        results.append(result)
        is_shown = options.verbose or result.verdict not in (Verdict.PASSED, Verdict.SKIPPED)
        if not options.json and is_shown:
            sys.stdout.write(format_result(result) + "\n")
    if options.json:
        sys.stdout.write(format_json(manifest.url, results) + "\n")
    else:
        sys.stdout.write(format_summary(results) + "\n")
    if options.junit:
        options.junit.write_text(format_junit(results), encoding="utf-8")
    return results


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ofrep-conformance",
        description="Check a server of the OpenFeature Remote Evaluation Protocol (OFREP) 0.3.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("url", nargs="?", default="", help="base URL, without /ofrep/v1")
    add("--manifest", type=Path, metavar="FILE", help="TOML or JSON file that names the flags")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent each time")
    add("--flag", action="append", default=[], metavar="KEY=VALUE", help="a flag and its value")
    add(
        "--requires-targeting-key",
        action="append",
        default=[],
        metavar="KEY",
        help="a flag of --flag or the manifest that can't be evaluated without a targeting key",
    )
    add("--unknown", metavar="KEY", help="a key that no flag has")
    add("--context", metavar="JSON", help='evaluation context; {"targetingKey": "user-1"}')
    add("--other-context", metavar="JSON", help="a context that gives some flag another value")
    add("--timeout", type=float, metavar="SECONDS", help="for each response; 5 if not given")
    add("--only", action="append", default=[], metavar="CHECK", help="run this check; repeatable")
    add("--skip", action="append", default=[], metavar="CHECK", help="skip this check; repeatable")
    add("--strict", action="store_true", help="exit with 1 if a SHOULD fails, too")
    add("--verbose", "-v", action="store_true", help="show passed and skipped checks, too")
    add("--json", action="store_true", help="write the results as JSON")
    add("--junit", type=Path, metavar="FILE", help="also write a JUnit XML report")
    add("--list", action="store_true", help="list the checks and exit")
    add("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def make_manifest(options: argparse.Namespace) -> Manifest:
    """Return the manifest with the options added; raise :class:`ManifestError`."""
    if options.manifest:
        manifest = load_manifest(options.manifest, options.url)
    else:
        manifest = parse_manifest({}, options.url)
    changes: dict[str, Any] = {
        "headers": {**manifest.headers, **dict(map(_parse_header, options.header))}
    }
    for name in ("unknown", "timeout"):
        if (value := getattr(options, name)) is not None:
            changes[name] = value
    for name in ("context", "other_context"):
        if (text := getattr(options, name)) is not None:
            changes[name] = _parse_context(text)
    manifest = add_flags(
        validate(replace(manifest, **changes)), map(parse_flag_option, options.flag)
    )
    known = {flag.key: flag for flag in manifest.flags}
    for key in options.requires_targeting_key:
        if key not in known:
            raise ManifestError(f"--requires-targeting-key {key}: add --flag {key}=VALUE.")
        known[key] = replace(known[key], requires_targeting_key=True)
    return replace(manifest, flags=tuple(known.values()))


def _parse_header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator or not name.strip():
        raise ManifestError(f"{text} must be 'NAME: VALUE'.")
    return name.strip(), value.strip()


def _parse_context(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ManifestError(f"{text} is not JSON: {error}.") from error
