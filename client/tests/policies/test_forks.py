"""A child's breakers start anew, under its own boot, and follow the console."""

import json
import threading
import time

from tests.fake_console import CONFIG, console
from tests.policies.policy_clients import NAME
from tests.reporting.program_runner import environment, run


def asking(there):
    return {one.headers["switchgear-instance"] for one in there.requests_for(CONFIG)}


def test_child_begins_anew_and_tells_on_its_own(tmp_path):
    with console() as there:
        there.configure(NAME, timeout_ms=700)
        changing = threading.Thread(target=change_once_two_ask, args=(there,))
        changing.start()
        output = run("forked_breaker", given=environment(there, tmp_path))
        changing.join()

    child, parent = (json.loads(line) for line in output.splitlines())
    assert (child["who"], child["before"], child["failures"]) == ("child", "closed", 1)
    assert (parent["who"], parent["before"], parent["failures"]) == ("parent", "open", 1)
    assert child["timeout_seconds"] == parent["timeout_seconds"] == 0.5
    last = {report["instance"]: report for report in there.reports}
    of_child, of_parent = last[child["instance"]], last[parent["instance"]]
    assert of_child["boot"] != of_parent["boot"]
    steps = {
        (report["boot"], step["n"])
        for report in there.reports
        for one in report.get("breakers", [])
        for step in one["transitions"]
    }
    assert steps == {(of_child["boot"], 1), (of_parent["boot"], 1)}
    assert asking(there) == {f"core/{child['instance']}", f"core/{parent['instance']}"}


def change_once_two_ask(there):
    """They see it if both follow."""
    until = time.monotonic() + 20
    while len(asking(there)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    there.configure(NAME, timeout_ms=500)
