"""Command `manage.py flags`: convert flags of Unleash or LaunchDarkly to `switches.yaml`.

It reads and writes files only. `config diff` shows what the written file would change, and `config
load` registers the switches; nothing is ever engaged.
"""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.core.configuration.yaml_writer import write_document
from controlplane.core.errors import InvalidInput
from switches.services.configuration import FILE, PART
from switches.services.flag_exports import convert_flags

MAX_BYTES = 64 * 1024 * 1024


class Command(BaseCommand):
    help = "Convert exported kill-switch flags of Unleash or LaunchDarkly to switches.yaml."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        convert = commands.add_parser("convert", help="write a switches.yaml for `config load`")
        convert.add_argument("file", help="JSON file of the other tool; - for standard input")
        convert.add_argument("--scope", default="feature", help="scope of the switches: feature")
        convert.add_argument("--tag", default="", help="take the flags with this tag instead")
        convert.add_argument("--output", type=Path, help="file to write; by default the output")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            document = json.loads(_read_file(options["file"]))
            converted = convert_flags(document, scope=options["scope"], tag=options["tag"])
        except InvalidInput as error:
            lines = (f"{path}: {text}" for path, texts in error.errors.items() for text in texts)
            raise CommandError("\n".join(lines)) from error
        except ValueError as error:
            raise CommandError(f"{options['file']} is not JSON: {error}") from error
        text = write_document(FILE, {PART: converted.entries})
        if options["output"]:
            options["output"].write_text(text, encoding="utf-8")
        else:
            self.stdout.write(text, ending="")
        for remark in converted.remarks:
            self.stderr.write(remark)
        self.stderr.write(f"{len(converted.entries)} switches. Nothing has been registered yet.")


def _read_file(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read(MAX_BYTES)
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} can't be read: {error}") from error
