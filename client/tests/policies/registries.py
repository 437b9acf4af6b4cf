"""A registry, and documents of the console for it."""

import json
from typing import Any

from switchgear.clock import ConsoleClock
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import DependencyConfig
from switchgear.policies.registry import Registry
from switchgear.testing import FakeClock

EPOCH = "e"
FOREVER = "2100-01-01T00:00:00Z"


def registry() -> Registry:
    clock = ConsoleClock(FakeClock())
    clock.trust_local()
    return Registry(clock, ends_alone=False)


def apply_config(dependency: Dependency, config: DependencyConfig, now: float) -> None:
    dependency.set_config(config, now)
    dependency.apply_pending()


def override(mode: str, version: int, ends_at: str = FOREVER) -> dict[str, Any]:
    section = {"mode": mode, "reason": "a test", "expires_at": ends_at, "version": version}
    return {"override": section}


def document(version: int, dependencies: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"version": version, "dependencies": dependencies, **more}).encode()
