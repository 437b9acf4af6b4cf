"""asyncio, imported at its first use.

The import takes as long as that of the client, and programs without coroutines never need it. Each
attribute access costs 0.1 µs more than on the module itself; the hot path looks asyncio up in
:data:`sys.modules` instead.
"""

from typing import TYPE_CHECKING

__all__ = ["asyncio"]

if TYPE_CHECKING:
    import asyncio
else:

    class _Asyncio:
        """A proxy for the module asyncio. It caches no attributes, since tests may replace them."""

        def __getattr__(self, name: str) -> object:
            import asyncio

            return getattr(asyncio, name)

    asyncio = _Asyncio()
