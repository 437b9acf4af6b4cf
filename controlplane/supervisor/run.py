"""`run`: starts a whole installation, from PostgreSQL and Redis to the welcome text."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from controlplane import environment
from controlplane.environment import Environment
from controlplane.supervisor import (
    application,
    identity,
    layout,
    ports,
    redis,
    service_processes,
)
from controlplane.supervisor.application import RunPlan
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.failure import CannotRun, StopRequested
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.output import Terminal
from controlplane.supervisor.service_processes import Services
from controlplane.supervisor.tree import Tree

from .file_lock import Lock

APPLICATION_STOP_SECONDS = 5
LATER_STOP_SECONDS = 3
"""Time for the plan's `later` processes to send their final reports to the console."""
_STAND_IN_STOP_SECONDS = 6
_STEP_AGAIN_SECONDS = 5
_TERMINAL_DRAIN_SECONDS = 0.5
_WRONG_SETTING = 2  # Exit code for an invalid setting, after which a retry is useless.


def run(
    terminal: Terminal,
    build: Callable[[Environment, Layout, Mapping[str, str]], RunPlan] = application.build_plan,
    stop_seconds: float = APPLICATION_STOP_SECONDS,
) -> int:
    """Run an installation until a signal; return 0, or raise `CannotRun` or `WrongVariable`."""
    settings = environment.read_environment()
    application.web_workers()
    port_keeper = ports.reserve_port(settings.port)
    place = layout.create_layout(settings.data_dir)
    with contextlib.ExitStack() as stack:
        if port_keeper is not None:
            stack.enter_context(port_keeper)
        stack.callback(Lock(place.run / "lock").release)
        _remove_addresses(place)
        copy = place.data / "snapshot" / "current"
        # While there is a copy to serve, the data plane continues whatever else fails.
        tree = stack.enter_context(Tree(terminal, may_give_up=lambda: not copy.exists()))
        given = {name: os.environ.get(name, "") for name in service_processes.VARIABLES}
        home = place.data
        if not given["DATABASE_URL"]:
            home = stack.enter_context(identity.cluster_home(place.data))
        terminal.say(f"starting {describe_start(given)}")
        services = Services()
        stack.callback(services.stop, tree)
        processes: list[Child] = []
        later: list[Child] = []
        stack.callback(lambda: tree.stop(processes, stop_seconds))
        stack.callback(lambda: tree.stop(later, LATER_STOP_SECONDS))
        try:
            plans: list[RunPlan] = []
            stand_ins: list[Child] = []

            def build_plan() -> None:
                plan = build(settings, place, services.addresses)
                plans.append(plan)
                if plan.stand_in is not None and copy.exists():
                    stand_ins.append(tree.supervise(plan.stand_in))

            service_processes.start_services(
                tree, services, place, home, given, durable=True, addressed=build_plan
            )
            stack.callback(_remove_addresses, place)
            service_processes.publish_addresses(tree, place, services)
            _run_application(tree, settings, place, plans[0], processes, later, stand_ins)
        except StopRequested:
            terminal.say("stopping")
    terminal.say("stopped")
    terminal.drain(_TERMINAL_DRAIN_SECONDS)
    return 0


def describe_start(given: Mapping[str, str]) -> str:
    """Return what a run starts, if `given` has the addresses of external servers."""
    names = [] if given["DATABASE_URL"] else ["PostgreSQL"]
    if not given["REDIS_URL"] and redis.find_program() is not None:
        names.append("Redis")
    return " and ".join(filter(None, [", ".join(names), "the console"]))


def _remove_addresses(place: Layout) -> None:
    with contextlib.suppress(OSError):  # A leftover is recognized by its process id.
        (place.run / "services.json").unlink(missing_ok=True)


def _run_application(
    tree: Tree,
    settings: Environment,
    place: Layout,
    plan: RunPlan,
    processes: list[Child],
    later: list[Child],
    stand_ins: list[Child],
) -> None:
    account = {}
    parallel_step = tree.launch(plan.parallel_step)
    for step in plan.steps:
        done = _run_step(tree, step)
        if step.keeps_stdout:
            account = _parse_account(step.name, done.stdout)
    tree.wait_until(lambda: not parallel_step.is_alive, None)
    _check(parallel_step)
    processes.extend(tree.supervise(spec) for spec in plan.processes)
    while (probe := tree.run_once(plan.probe, application.READY_SECONDS + 10)).exit_code != 0:
        outputs = "".join(f"\n{c.spec.name}:{c.format_tail()}" for c in processes if c.tail)
        message = (
            f"the web process was not ready within {application.READY_SECONDS} s; its last"
            f" response:{probe.format_tail()}{outputs}"
        )
        if tree.may_give_up():
            raise CannotRun(message)
        tree.terminal.say(message)
    for stand_in in stand_ins:
        tree.retire(stand_in, _STAND_IN_STOP_SECONDS)
    tree.terminal.show(
        format_welcome(settings, account, place.log / application.LOG_NAME) + plan.greeting
    )
    later.extend(tree.supervise(spec) for spec in plan.later)
    if plan.documentation is not None:
        build = tree.run_once(plan.documentation)
        if build.exit_code != 0:
            tree.terminal.say(
                f"documentation failed ({build.describe_end()}):{build.format_tail()}"
            )
    tree.wait_until(lambda: False, None)


def _run_step(tree: Tree, step: ChildSpec) -> Child:
    """Run a setup step to its end; if it fails, raise CannotRun.

    While a snapshot can be served, a failed step is retried instead, except for wrong settings.
    """
    delay = _STEP_AGAIN_SECONDS
    while True:
        done = tree.run_once(step)
        if done.exit_code in {0, _WRONG_SETTING} or tree.may_give_up():
            _check(done)
            return done
        tree.terminal.say(
            f"{step.name} failed ({done.describe_end()}); retrying in {delay} s:"
            f"{done.format_tail()}"
        )
        tree.wait_until(lambda: False, delay)


def _check(step: Child) -> None:
    if step.exit_code != 0:
        raise CannotRun(f"{step.spec.name} failed ({step.describe_end()}):{step.format_tail()}")


def _parse_account(step: str, stdout: bytes) -> dict[str, str | None]:
    lines = stdout.decode(errors="replace").strip().splitlines()
    try:
        account = json.loads(lines[-1])
        return {key: account.get(key) for key in ("user", "password", "note")}
    except (IndexError, ValueError, AttributeError) as error:
        raise CannotRun(f"{step} did not print a JSON object: {lines[-1:]}") from error


def format_welcome(settings: Environment, account: Mapping[str, str | None], log: Path) -> str:
    """Return the text that names the address, the log, the user and how to sign in."""
    user, password, note = (account.get(key) for key in ("user", "password", "note"))
    sign_in = f"  User      {user}\n  Password  {password or note or 'unchanged'}\n"
    if user is None:
        sign_in = "  Sign in as another admin; the user admin doesn't exist.\n"
    elif not password:
        sign_in += f"  Lost it?  .venv/bin/python manage.py person password {user}\n"
    return (
        f"\nSwitchgear is ready. Environment: {settings.name}\n\n"
        f"  URL       http://{ports.HOST}:{settings.port}/\n"
        f"{sign_in}"
        f"  Log       {log}\n\n"
        "Press Ctrl-C to stop.\n\n"
    )
