"""Registries of kinds: objects that apps register once, by name."""

import functools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_SKIPPED_FOLDERS = {"__pycache__", "management", "migrations", "templatetags", "tests"}


class KindRegistry(Mapping[str, T], Generic[T]):
    """A mapping of names to registered objects, sorted by `order`.

    With `module`, its first use imports all modules of this name (such as `retention_rules`) in
    this project's apps; they call :meth:`register`. Without `module`, the objects are registered
    when their owner is imported.
    """

    def __init__(
        self,
        module: str = "",
        *,
        name: Callable[[T], str] = attrgetter("name"),
        order: Callable[[T], Any] | None = None,
    ) -> None:
        self._module = module
        self._name = name
        self._order = order
        self._items: dict[str, T] = {}
        self._lock = threading.Lock()
        self._is_discovered = not module

    def register(self, *items: T) -> None:
        """Add items; raise ValueError if a name is taken."""
        with self._lock:  # Two threads may import modules of kinds at once.
            for item in items:
                name = self._name(item)
                if name in self._items:
                    where = self._module or "its registry"
                    raise ValueError(f"{name} is registered twice in {where}.")
                self._replace_items({**self._items, name: item})

    def unregister(self, *names: str) -> None:
        """Remove items by name; for tests."""
        with self._lock:
            self._replace_items(
                {name: self._items[name] for name in self._items if name not in names}
            )

    @contextmanager
    def registered(self, item: T) -> Iterator[T]:
        """Context manager: an item is registered during the block; for tests."""
        self.register(item)
        try:
            yield item
        finally:
            self.unregister(self._name(item))

    def __deepcopy__(self, memo: Any) -> "KindRegistry[T]":
        return self  # Forms copy their fields, and with them the bound method `choices`.

    @property
    def names(self) -> "RegisteredNames":
        """A live view of the names, which includes names that are registered later."""
        return RegisteredNames(self)

    def choices(self) -> list[tuple[str, str]]:
        return [(name, name) for name in self]

    def __getitem__(self, name: str) -> T:
        self._discover()
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        self._discover()
        return isinstance(name, str) and name in self._items

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(self._items)

    def __len__(self) -> int:
        self._discover()
        return len(self._items)

    def _replace_items(self, items: dict[str, T]) -> None:
        # A new dict each time, because another thread may iterate over the previous one.
        order = self._order
        if order is not None:
            items = dict(sorted(items.items(), key=lambda entry: order(entry[1])))
        self._items = items

    def _discover(self) -> None:
        if self._is_discovered:
            return
        for module in _modules_by_name().get(self._module, ()):
            import_module(module)
        self._is_discovered = True


@dataclass(frozen=True)
class RegisteredFunction(Generic[F]):
    """A registered function, with its position in the order of its registry."""

    function: F
    position: int = 0

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def label(self) -> str:
        """The function's name in words: `list_open_breakers` → `open breakers`."""
        name = self.function.__name__.strip("_")
        return name.removeprefix("list_").removesuffix("_section").replace("_", " ")


class FunctionRegistry(KindRegistry[RegisteredFunction[F]], Generic[F]):
    """A registry of functions, sorted by position."""

    def __init__(self, module: str) -> None:
        super().__init__(module, order=lambda item: item.position)

    def add(self, position: int = 0) -> Callable[[F], F]:
        """Return a decorator that registers a function."""

        def register(function: F) -> F:
            self.register(RegisteredFunction(function, position))
            return function

        return register

    def functions(self) -> list[F]:
        return [item.function for item in self.values()]


class Port(Generic[T]):
    """The place where another app registers its implementation of an interface, once at startup."""

    def __init__(self, missing: str) -> None:
        self._missing = missing
        self._implementation: T | None = None

    def register(self, implementation: T) -> None:
        self._implementation = implementation

    def get(self) -> T:
        """Return the registered implementation; raise ImproperlyConfigured if there is none."""
        if self._implementation is None:
            from django.core.exceptions import ImproperlyConfigured

            raise ImproperlyConfigured(self._missing)
        return self._implementation


class RegisteredNames(KeysView[str], Sequence[str]):
    """A live view of the names in a registry, for serializer fields that offer them as choices."""

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]


@functools.cache
def _modules_by_name() -> Mapping[str, Sequence[str]]:
    """Map the name of each module, such as `metrics`, to the dotted paths of all modules so named.

    Only this project's apps are searched.
    """
    # Imported here, because the stand-in server during startup uses registries without Django.
    from django.apps import apps
    from django.conf import settings

    base = Path(settings.BASE_DIR)
    modules = defaultdict[str, set[str]](set)
    for config in apps.get_app_configs():
        if Path(config.path) != base.joinpath(*config.name.split(".")):
            continue  # A third party's app.
        for folder, folders, files in os.walk(config.path):
            folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
            package = ".".join(Path(folder).relative_to(base).parts)
            for file in files:
                stem, extension = os.path.splitext(file)
                if stem == "__init__":
                    modules[os.path.basename(folder)].add(package)
                elif extension == ".py":
                    modules[stem].add(f"{package}.{stem}")
    return {stem: sorted(modules) for stem, modules in modules.items()}
