"""asyncio, imported at its first use: its import takes as long as that of the client, and programs
without coroutines never need it.

An attribute costs a tenth of a microsecond more than one of the module itself. On the path of every
call, look into :data:`sys.modules` instead.
"""

from typing import TYPE_CHECKING

__all__ = ["asyncio"]

if TYPE_CHECKING:
    import asyncio
else:

    class _Asyncio:
        """A proxy for the module. Caches no attributes, as tests may replace them."""

        def __getattr__(self, name: str) -> object:
            import asyncio

            return getattr(asyncio, name)

    asyncio = _Asyncio()
