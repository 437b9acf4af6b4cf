"""Commands for the configuration as files: `config export|diff|load`."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from switchgear.cli import exits
from switchgear.cli.api_client import Document
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import StyledText
from switchgear.cli.parser import DRY_RUN, Commands, option, reason_option

PATH = "/configuration/"
SCHEMA_FOLDER = "schema"
MAX_NAMED = 5
MARKS = {"new": ("+ ", "good"), "changed": ("~ ", "warn"), "kept": ("= ", "quiet")}
LOAD_SECONDS = 35.0
"""Timeout of a load or comparison. The console itself gives up after 25 s."""
MAX_FILE_BYTES = 4 * 1024 * 1024
_FILE_NAME = re.compile(r"[a-z0-9_-]{1,60}\.(yaml|schema\.json)")


def register(commands: Commands) -> None:
    config = commands.add_plain_group("config", "the configuration as files: export, diff, load")
    folder = option("folder", type=Path, metavar="DIR", help="folder of the YAML files")
    keep = option(
        "--keep-edited",
        action="store_true",
        help="keep entries that were edited in the console since they were loaded",
    )
    config.add(
        "export",
        export_files,
        "write the current configuration as files, without secrets",
        folder,
    )
    config.add(
        "diff",
        show_diff,
        "show what loading the files would change",
        folder,
        keep,
        details=f"Exits with {exits.DIFFERENT} if anything would change.",
    )
    config.add(
        "load",
        load_files,
        "load all files or none, after showing the changes",
        folder,
        keep,
        option("--yes", action="store_true", help="load without confirmation"),
        reason_option("reason for the audit trail", required=False),
        DRY_RUN,
        details="Entries that are in no file stay. Safety rules need a second person's approval.",
    )


def export_files(call: CommandContext) -> None:
    folder: Path = call.args.folder
    files = call.console.get(PATH)["files"]
    schemas = call.console.get(f"{PATH}schemas")["schemas"]
    if not all(_FILE_NAME.fullmatch(name) for name in (*files, *schemas)):
        raise call.console.unexpected_answer()
    texts = {Path(name): text for name, text in files.items()}
    for name, schema in schemas.items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        texts[Path(SCHEMA_FOLDER) / name] = text
    try:
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        detail = f"{error.filename or folder} can't be written: {error.strerror}."
        raise exits.make_exit(exits.FAILED, "not-written", detail) from None
    if not call.print_json({"folder": str(folder), "files": sorted(files)}):
        said = f"{len(files)} files written to {folder}. Secrets are not exported."
        call.screen.line(StyledText("✔ ", "good"), said)


def show_diff(call: CommandContext) -> int:
    plan = _compare(call, _read_folder(call.args.folder))
    if not call.print_json(plan):
        _print_plan(call, plan)
    return exits.DIFFERENT if _differs(plan) else exits.DONE


def load_files(call: CommandContext) -> int:
    """Show the plan, ask, and load exactly this plan; the console refuses any other."""
    files = _read_folder(call.args.folder)
    plan = _compare(call, files)
    is_shown = not call.screen.as_json
    if is_shown:
        _print_plan(call, plan)
    if call.args.dry_run or not _differs(plan):
        call.print_json(plan)
        return exits.DONE
    if not call.args.yes:
        _confirm(call)
    body = {"files": files, "keep_edited": call.args.keep_edited, "plan": plan["plan"]}
    body["reason"] = call.args.reason
    loaded = call.console.send("POST", PATH, body, seconds=LOAD_SECONDS)
    waiting = [one for one in loaded["changes"] if one["approval"]]
    if not call.print_json(loaded):
        call.screen.line(StyledText("✔ ", "good"), f"Loaded: {_describe_counts(loaded)}.")
        for one in waiting:
            head = StyledText("⚑ Waiting for approval by a second person", "warn")
            call.screen.line(head, f" (request {one['approval']}): {one['kind']} {one['name']}.")
    return exits.NEEDS_APPROVAL if waiting else exits.DONE


def _compare(call: CommandContext, files: Mapping[str, str]) -> Document:
    body = {"files": files, "keep_edited": call.args.keep_edited}
    has_changed = call.console.has_changed
    plan = call.console.send("POST", f"{PATH}diff", body, seconds=LOAD_SECONDS)
    call.console.has_changed = has_changed  # A comparison changes nothing.
    return plan


def _read_folder(folder: Path) -> dict[str, str]:
    """Return the texts of the YAML files in a folder by name; raise :class:`CommandExit`."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".yaml")
        texts = {}
        for path in paths:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise exits.make_usage_exit(f"{path} is larger than 4 MiB.")
            texts[path.name] = path.read_text(encoding="utf-8")
    except OSError as error:
        detail = f"{error.filename or folder} can't be read: {error.strerror}."
        raise exits.make_usage_exit(detail) from None
    except UnicodeDecodeError:
        raise exits.make_usage_exit(f"{path} is not UTF-8.") from None
    if not texts:
        raise exits.make_usage_exit(f"{folder} has no YAML files (*.yaml).")
    return texts


def _confirm(call: CommandContext) -> None:
    """Ask for confirmation on the terminal; raise :class:`CommandExit` unless it is given."""
    if call.screen.as_json or not sys.stdin.isatty():
        raise exits.make_usage_exit("Nothing was loaded. Add --yes to load without confirmation.")
    call.screen.note("Load these changes? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise exits.make_exit(exits.FAILED, "not-confirmed", "Nothing was loaded.")


def _differs(plan: Document) -> bool:
    return any(one["outcome"] != "kept" for one in plan["changes"])


def _print_plan(call: CommandContext, plan: Document) -> None:
    for one in plan["changes"]:
        _print_change(call, one)
    if elsewhere := plan["elsewhere"]:
        named, more = ", ".join(elsewhere[:MAX_NAMED]), len(elsewhere) - MAX_NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        call.screen.line(StyledText(f"In none of the files, unchanged: {named}{rest}.", "quiet"))
    for remark in plan["remarks"]:
        call.screen.line(remark)
    call.screen.line(f"Plan: {_describe_counts(plan)}.")


def _print_change(call: CommandContext, one: Mapping[str, Any]) -> None:
    mark = StyledText(*MARKS[one["outcome"]])
    edited = f" ({one['edited']})" if one["edited"] else ""
    note = f": {one['note']}" if one["note"] else ""
    call.screen.line(mark, f"{one['kind']} {one['name']}{edited}{note}")
    for difference in one["differences"]:
        call.screen.line(f"    {difference}")


def _describe_counts(plan: Document) -> str:
    counts = plan["counts"]
    kept = f", {counts['kept']:,} kept with edits" if counts["kept"] else ""
    return (
        f"{counts['new']:,} new, {counts['changed']:,} changed, {counts['same']:,} unchanged{kept}"
    )
