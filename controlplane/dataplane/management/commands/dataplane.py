"""`manage.py dataplane`: run a standalone data plane, or list the emergency orders on disk."""

import json
import os
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings

from controlplane.core.shell import ShellCommand
from controlplane.dataplane.config import (
    RelayConfig,
    from_environment,
    relay_from_environment,
)
from controlplane.dataplane.emergency.order_list import list_documents, read_orders
from controlplane.dataplane.relay.saved_orders import read_relay_orders
from controlplane.environment.relay import UPSTREAM
from controlplane.processes import command_lines
from controlplane.processes.exec_command import (
    add_server_arguments,
    check_login,
    free_address,
    replace_process,
)
from controlplane.processes.relay_command import add_upstream_argument
from switches.expiry import PERMANENT


class Command(ShellCommand):
    help = (
        "Run a data plane, which serves snapshots and checks to services and stores their reports."
        " Starts without PostgreSQL and Redis and connects when they are available. With `orders`,"
        " list the emergency orders on this machine's disk instead."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "orders",
            nargs="?",
            choices=["orders"],
            help="list open and withdrawn emergency orders; needs no running process",
        )
        parser.add_argument("--json", action="store_true", help="print orders as JSON")
        add_server_arguments(parser)
        add_upstream_argument(parser)  # For the help: `manage.py` runs `RelayCommand` then.

    def handle(self, *args: Any, **options: Any) -> None:
        if options["orders"]:
            self._list_orders(as_json=options["json"])
            return
        port, workers = options["port"], options["workers"]
        host = free_address(options["host"], port)
        check_login(settings.ENV)
        replace_process(command_lines.dataplane(host=host, port=port, workers=workers))

    def _list_orders(self, *, as_json: bool) -> None:
        is_relay = bool(os.environ.get(UPSTREAM))
        config = relay_from_environment() if is_relay else from_environment()
        try:
            orders = (
                read_relay_orders(config)
                if isinstance(config, RelayConfig)
                else read_orders(config)
            )
        except OSError as error:
            self.fail(f"The orders can't be read: {error.filename}: {error.strerror}.")
            return
        documents = list_documents(orders)
        if as_json:
            self.stdout.write(json.dumps({"results": documents}, indent=2, ensure_ascii=False))
            return
        if not documents:
            self.line(f"No open or withdrawn emergency orders in {config.folder}/emergency.")
        for each in documents:
            self.line(f"{each['state']}  {each['switch']}  {each['id']}")
            expiry = each["expires_in"]
            lasts = expiry if expiry == PERMANENT else f"for {expiry}"
            self.line(f"  ordered {_describe(each)}, {lasts}: {each['reason']}")
            if (withdrawal := each["withdrawal"]) is not None:
                self.line(f"  withdrawn {_describe(withdrawal)}: {withdrawal['reason']}")


def _describe(document: dict[str, Any]) -> str:
    """Return when, by whom and on which data plane an order was given."""
    at, by = datetime.fromisoformat(document["at"]), document["by"]
    return f"{at:%Y-%m-%d %H:%M:%S} UTC by {by['type']} {by['name']} on {document['plane']}"
