"""Time limits on a machine that may be loaded."""
import asyncio
import os


async def within(seconds, work):
    """Awaits `work`, or raises TimeoutError. On a loaded machine the limit is longer, up to eight times: it counts the
    share of a processor that a busy thread gets, like LoadAdjustedClock in the tests themselves."""
    task = asyncio.ensure_future(work)
    try:
        while seconds > 0:
            await asyncio.wait([task], timeout=0.5)
            if task.done():
                return task.result()
            seconds -= 0.5 * max(1 / 8, processor_share())
        raise TimeoutError
    finally:
        task.cancel()


def processor_share():
    # The fourth word, such as 3/412, has the number of threads that want a processor, including this one.
    with open("/proc/loadavg", encoding="ascii") as file:
        runnable = int(file.read().split()[3].split("/")[0]) - 1
    processors = os.cpu_count()
    return processors / max(runnable, processors)
