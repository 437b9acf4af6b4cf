"""Background task that watches the folder of orders, which the processes of one host share."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import structlog

from .service import EmergencyOrders

POLL_SECONDS = 0.25
LIST_SECONDS = 10.0
"""Maximum time between two listings, for file systems that don't update a folder's time."""
RECENT_SECONDS = 2.0
"""A folder that changed so recently is listed again: its time may not tell two changes apart."""
STORE_SECONDS = 1.0
"""Interval of further attempts to store an order."""

log = structlog.get_logger(__name__)


async def watch_folder(service: EmergencyOrders) -> None:
    """Serve the orders that other processes add to the folder, until canceled.

    Orders that could not be stored are stored as soon as the disk works again.
    """
    loop = asyncio.get_running_loop()
    # A thread of its own, so that a disk that hangs occupies none that other work needs.
    executor = ThreadPoolExecutor(1, thread_name_prefix="order-folder")
    seen, is_failing = -1, False
    listed_at = stored_at = loop.time()
    try:
        while True:
            try:
                changed_at = await loop.run_in_executor(executor, service.changed_at)
                is_recent = abs(time.time() - changed_at / 1e9) < RECENT_SECONDS
                if changed_at != seen or is_recent or loop.time() - listed_at > LIST_SECONDS:
                    await service.load(executor)
                    seen, listed_at = changed_at, loop.time()
                if loop.time() - stored_at > STORE_SECONDS:
                    await service.store_missing()
                    stored_at = loop.time()
                is_failing = False
            except Exception as error:
                if not is_failing:
                    log.error(
                        "emergency_order.not_loaded", kind=type(error).__name__, error=str(error)
                    )
                is_failing = True
            await asyncio.sleep(POLL_SECONDS)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
