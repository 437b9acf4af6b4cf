"""Feature flag libraries to compare with, each used as its manual shows.

Each holds one flag per switch key in memory, off for engaged switches; network and telemetry are
off. Each library is imported only when used, because it is installed for this benchmark alone.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

Keys = Sequence[str]


@dataclass(frozen=True)
class Peer:
    """A library under test: `ask` checks one flag, and `ask_all` checks many in a loop.

    If `ask` wraps the library's own function, pass a `loop` that calls that function directly for
    all keys, so that `ask_all` does not measure the wrapper.
    """

    name: str
    ask: Callable[[str], bool]
    loop: Callable[[Keys], None] | None = None

    def ask_all(self, keys: Keys) -> None:
        if self.loop is not None:
            self.loop(keys)
            return
        ask = self.ask
        for key in keys:
            ask(key)


@contextmanager
def ready(stopped: Keys, flowing: Keys) -> Iterator[list[Peer]]:
    """Context manager: yield all libraries, with the flags `stopped` off and `flowing` on."""
    with ExitStack() as stack:
        yield [
            _function(stopped),
            _growthbook(stopped, flowing),
            _launchdarkly(stack, stopped, flowing),
            _openfeature(stack, stopped, flowing),
            _unleash(stack, stopped, flowing),
        ]


def _function(stopped: Keys) -> Peer:
    """Return a look-up in a dict, whose cost is the lower bound of any check."""
    engaged = dict.fromkeys(stopped, True)

    def allowed(key: str) -> bool:
        return key not in engaged

    return Peer("a dict in a function", allowed)


def _growthbook(stopped: Keys, flowing: Keys) -> Peer:
    from growthbook import GrowthBook

    features = {key: {"defaultValue": on} for key, on in _flags(stopped, flowing)}
    return Peer("growthbook", GrowthBook(features=features).is_on)


def _launchdarkly(stack: ExitStack, stopped: Keys, flowing: Keys) -> Peer:
    """Return LaunchDarkly with flags from its test data source, as its offline mode has none."""
    from ldclient import Context, LDClient
    from ldclient.config import Config
    from ldclient.integrations.test_data import TestData

    source = TestData.data_source()
    for key, on in _flags(stopped, flowing):
        source.update(source.flag(key).variation_for_all(on))
    client = LDClient(
        Config("sdk-key", update_processor_class=source, send_events=False, diagnostic_opt_out=True)
    )
    stack.callback(client.close)
    context = Context.create("user-1")

    def ask_all(keys: Keys) -> None:
        for key in keys:
            client.variation(key, context, True)

    return Peer("launchdarkly", lambda key: client.variation(key, context, True), ask_all)


def _openfeature(stack: ExitStack, stopped: Keys, flowing: Keys) -> Peer:
    from openfeature import api
    from openfeature.provider.in_memory_provider import InMemoryFlag, InMemoryProvider

    variants = {"on": True, "off": False}
    flags = {
        key: InMemoryFlag("on" if on else "off", variants) for key, on in _flags(stopped, flowing)
    }
    api.set_provider(InMemoryProvider(flags))
    stack.callback(api.shutdown)
    client = api.get_client()

    def ask_all(keys: Keys) -> None:
        for key in keys:
            client.get_boolean_value(key, True)

    return Peer("openfeature", lambda key: client.get_boolean_value(key, True), ask_all)


def _unleash(stack: ExitStack, stopped: Keys, flowing: Keys) -> Peer:
    from UnleashClient import UnleashClient
    from UnleashClient.cache import FileCache

    strategies = [{"name": "default", "parameters": {}}]
    features = [
        {"name": key, "enabled": on, "strategies": strategies}
        for key, on in _flags(stopped, flowing)
    ]
    cache = FileCache("bench", directory=stack.enter_context(tempfile.TemporaryDirectory()))
    cache.bootstrap_from_dict({"version": 2, "features": features})
    client = UnleashClient(
        "http://127.0.0.1:9/api",
        "bench",
        cache=cache,
        disable_metrics=True,
        disable_registration=True,
    )
    client.initialize_client(fetch_toggles=False)
    stack.callback(client.destroy)
    return Peer("unleash", client.is_enabled)


def _flags(stopped: Keys, flowing: Keys) -> Iterator[tuple[str, bool]]:
    for on, keys in ((False, stopped), (True, flowing)):
        for key in keys:
            yield key, on
