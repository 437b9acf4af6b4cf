"""Command `manage.py killswitch`: emergency control from the server's shell."""

import json
import shlex
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.management.base import CommandError
from django.db import transaction

from controlplane.core.actors import label_of
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.gates import kinds
from controlplane.core.jobs.models import JobStep
from controlplane.core.shell import ShellCommand, shell_actor
from switches import services, switch_list
from switches.effect import SwitchEffect, measure_effect
from switches.models import Ramp, Switch, SwitchState
from switches.ramps import actions, descriptions, live_ramps
from switches.rules import break_glass, guard
from switches.rules.break_glass import SafetyRefused
from switches.scopes import GLOBAL, GLOBAL_ID, SCOPES, keyed_scopes
from switches.services.registration import find_or_new, identify
from switches.services.release import MODES

R = TypeVar("R", services.Engagement, services.Release)
STRAGGLERS_NAMED = 5
MAX_LISTED = 1000
EFFECT_SECONDS = 1.0
"""Longest wait for instances to confirm a change, before the command says who applies it."""
EFFECT_POLL_SECONDS = 0.1
DESCRIPTIONS = {
    "release": (
        "Let traffic flow again. Releases that need a second person (global, a segment at once)"
        " proceed as break-glass and require a review."
    )
}


class Command(ShellCommand):
    help = "Engage, release, extend and show kill switches from the server's shell."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        for name in ("engage", "release", "abort", "extend", "status", "list"):
            command = commands.add_parser(name, description=DESCRIPTIONS.get(name))
            command.add_argument("--json", action="store_true", help="print JSON as in the API")
            which = command.add_mutually_exclusive_group(required=name != "list")
            for scope in SCOPES.values():
                option, dest = f"--{scope.name}", f"scope_{scope.name}"
                if scope.stops_everything:
                    fixed: dict[str, Any] = {"action": "store_const", "const": scope.only_key}
                    which.add_argument(option, dest=dest, help=GLOBAL_ID, **fixed)
                else:
                    which.add_argument(option, dest=dest, metavar="KEY", help=scope.description)
            if name in {"engage", "release", "abort", "extend"}:
                command.add_argument("--reason", required=True)
            if name in {"engage", "extend"}:
                command.add_argument("--for", dest="duration", default="24h", help="24h, 7d, …")
            if name == "engage":
                command.add_argument("--on-expiry", choices=["hold", "ramp", "release"])
            if name == "release":
                command.add_argument(
                    "--mode",
                    choices=MODES,
                    default="ramp",
                    help="in steps of 5, 25 and 100 %% (default), or all at once",
                )
            if name in {"engage", "release"}:
                command.add_argument(
                    "--break-glass",
                    action="append",
                    metavar="RULE",
                    help="override this safety rule; may be repeated. Requires a review.",
                )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["command"] == "list":
            self.list(options)
            return
        scope, key = _get_switch_option(options)
        getattr(self, options["command"])(scope, key, options)

    def engage(self, scope: str, key: str, options: dict[str, Any]) -> None:
        self.change(
            services.engage,
            scope,
            key,
            options,
            reason=options["reason"],
            expires_in=options["duration"],
            on_expiry=options["on_expiry"],
            break_glass=_break_glass(options),
        )

    def release(self, scope: str, key: str, options: dict[str, Any]) -> None:
        """Release without an approval; a review is opened if an approval was required."""
        done = self.change(
            services.release,
            scope,
            key,
            options,
            justification=options["reason"],
            mode=options["mode"],
            break_glass=_break_glass(options),
        )
        if done.ramp is not None and not options["json"]:
            for number, step in enumerate(done.ramp.plan, 1):
                gates = "; ".join(map(kinds.describe_gate, step["gates"])) or "no gates"
                share = descriptions.format_percent(step["percent"])
                self.line(f"  step {number}: {share} for {step['dwell_seconds']} s, {gates}")
            which = "--global" if scope == GLOBAL.name else f"--{scope} {shlex.quote(key)}"
            self.line(f"  to stop it again: manage.py killswitch abort {which} --reason …")

    def abort(self, scope: str, key: str, options: dict[str, Any]) -> None:
        ramp = live_ramps.find_live_ramp(identify(scope, key))
        if ramp is None:
            raise CommandError(f"{scope}:{key} has no running ramp.")
        actions.abort(ramp_id=ramp.pk, reason=options["reason"], actor=shell_actor(), now=db_now())
        self.status(scope, key, options)

    def extend(self, scope: str, key: str, options: dict[str, Any]) -> None:
        expiry = {"expires_in": options["duration"], "reason": options["reason"]}
        self.change(services.extend, scope, key, options, **expiry)

    def change(
        self, make: Callable[..., R], scope: str, key: str, options: dict[str, Any], **more: Any
    ) -> R:
        """Call a service function, print the changed switch, and return the function's result.

        Also print what differs from the request, such as an awaited approval. An unknown rule in
        --break-glass causes only a warning: a typo must not prevent an engage.
        """
        with transaction.atomic(), _explain_override():
            done = make(scope=scope, key=key, **more, actor=shell_actor(), now=db_now())
        self.status(scope, key, options, seconds=EFFECT_SECONDS)
        known = {rule.name for rule in guard.list_rules()} | {break_glass.TWO_PERSON}
        for name in options.get("break_glass") or ():
            if name not in known:
                self.stderr.write(
                    f"No safety rule is named {name!r}, so none was overridden. Check the name."
                )
        if options["json"]:
            return done
        if done.review is not None:
            rule, review = done.review.diff["rule"], done.review.pk
            self.line(f"  against the rule {rule}: review {review} waits for signature")
        if isinstance(done, services.Engagement) and done.notice:
            self.line(f"  {done.notice}")
        if done.approval is not None:
            self.line(f"  permanent waits for approval: request {done.approval.pk}")
        return done

    def status(
        self, scope: str, key: str, options: dict[str, Any], *, seconds: float = 0.0
    ) -> None:
        """Print the switch; wait up to `seconds` for its reporting instances to confirm it."""
        if options["json"]:
            self.line(json.dumps(switch_list.read_resource(identify(scope, key))))
            return
        switch = find_or_new(scope, key)
        ends = time.monotonic() + seconds
        effect = measure_effect(switch, db_now())
        while effect and effect.instances and not effect.by_everybody and time.monotonic() < ends:
            time.sleep(EFFECT_POLL_SECONDS)
            effect = measure_effect(switch, db_now())
        ramp = live_ramps.find_live_ramp(switch.pk)
        self.line(_describe_switch(switch))
        for above in Switch.objects.stopped().filter(scope=GLOBAL.name).exclude(pk=switch.pk):
            self.line(f"  blocked anyway by {_describe_switch(above)}")
        if ramp is not None:
            self.line(f"  {_describe_ramp(ramp)}")
        if effect:
            for line in _describe_effect(effect):
                self.line(f"  {line}")

    def list(self, options: dict[str, Any]) -> None:
        scope, key = _get_switch_option(options, required=False)
        stopped = Switch.objects.stopped().with_open_episode().order_by("id")
        if scope:
            stopped = stopped.filter(scope=scope, key=key)
        found = list(stopped[: MAX_LISTED + 1])
        switches = found[:MAX_LISTED]
        if len(found) > MAX_LISTED:
            self.stderr.write(
                f"More than {MAX_LISTED} switches are engaged. Only the first are shown."
            )
        if options["json"]:
            shown = switch_list.read_resources([switch.pk for switch in switches])
            self.line(json.dumps(list(shown.values())))
            return
        for switch in switches:
            self.line(_describe_switch(switch))
        if not switches:
            self.line("No switch is engaged.")


def _break_glass(options: dict[str, Any]) -> dict[str, Any] | None:
    named = options["break_glass"]
    return {"rule": named, "reason": options["reason"]} if named else None


@contextmanager
def _explain_override() -> Iterator[None]:
    try:
        yield
    except SafetyRefused as refused:
        options = " ".join(
            f"--break-glass {shlex.quote(refusal.rule)}" for refusal in refused.refusals
        )
        reasons = " ".join(
            f"“{refusal.rule}” refuses: {refusal.detail} {refusal.would_pass}"
            for refusal in refused.refusals
        )
        raise CommandError(f"{reasons} To proceed anyway, add {options}") from refused


def _get_switch_option(options: dict[str, Any], *, required: bool = True) -> tuple[str, str]:
    for scope in SCOPES.names:
        if (key := options[f"scope_{scope}"]) is not None:
            return scope, key
    if required:
        named = ", ".join(f"--{scope.name} K" for scope in keyed_scopes())
        raise InvalidInput({"switch": [f"Choose one: {named}."]})
    return "", ""


def _describe_effect(effect: SwitchEffect) -> Iterator[str]:
    yield f"version {effect.version} is committed{_describe_applied(effect)}"
    if effect.silent_total:
        yield f"{effect.silent_total} stopped reporting in the last 5 minutes without confirming"
    if effect.past_expiry:
        yield "past its expiry: instances may allow traffic on their own"
    if effect.measured:
        plural = "" if effect.measured == 1 else "s"
        yield (
            f"confirmed by {effect.measured} instance{plural} after the commit:"
            f" p50 {effect.p50_ms} ms, p99 {effect.p99_ms} ms"
        )


def _describe_applied(effect: SwitchEffect) -> str:
    if not effect.instances:
        return "; no instance is reporting, so the effect is unknown"
    if effect.by_everybody:
        if effect.instances == 1:
            return ", applied by the only reporting instance"
        return f", applied by all {effect.instances} reporting instances"
    named = ", ".join(straggler.id for straggler in effect.stragglers[:STRAGGLERS_NAMED])
    more = effect.stragglers_total - len(effect.stragglers[:STRAGGLERS_NAMED])
    rest = f" and {more} more" if named and more else ""
    not_by = f"; not by {named}{rest}" if named else ""
    plural = "" if effect.instances == 1 else "s"
    return f", applied by {effect.applied} of {effect.instances} instance{plural}{not_by}"


def _describe_ramp(ramp: Ramp) -> str:
    job, steps = ramp.job, len(ramp.plan)
    share = descriptions.format_percent(ramp.plan[job.step_index]["percent"])
    step = job.steps.filter(index=job.step_index, state=JobStep.State.RUNNING).first()
    until = f", until {step.due_at:%H:%M:%S} UTC at least" if step and step.due_at else ""
    why = f": {job.hold_reason}" if job.hold_reason else ""
    at = f"step {job.step_index + 1} of {steps}, {share}{until}"
    return f"ramp {ramp.pk} {live_ramps.STATES[job.state]}, {at}{why}"


def _describe_switch(switch: Switch) -> str:
    episode = switch.episode
    if episode is None:
        return f"{switch.pk}  {SwitchState.RELEASED.value}"
    ends, due_at = "permanent", episode.reconfirm_due_at
    if episode.expires_at:
        ends = f"until {episode.expires_at:%Y-%m-%d %H:%M} UTC, then {episode.on_expiry}"
    elif due_at:
        ends = f"permanent, to be re-confirmed by {due_at:%Y-%m-%d %H:%M} UTC"
    late = "  OVERDUE" if episode.overdue else ""
    percent = episode.allow_percent
    share = f" {descriptions.format_percent(percent)}" if percent else ""
    who = label_of(episode.engaged_by_type, episode.engaged_by_name)
    return f"{switch.pk}  {episode.state.value}{share}{late}  {ends}  by {who}: {episode.reason}"
