"""`await session.run_async(...)` in asyncio: the loop goes on, cancelling ends the run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from endless_loop import ENDLESS, feed

GRAPH = """graph "g" {
  symbol n 1..8
  input %x : f32[n, 2]
  %y : f32[n, 2] = neg(%x)
  output "y" %y
}"""
X = np.array([[1, -2]], np.float32)


def session_of(text: str) -> pn.Session:
    return pn.Session(pn.Program(pn._core.Model.parse(text, [], False, []).build(["cpu"])), "cpu")


def waiting_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pinnace-await"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    yield
    for thread in waiting_threads():
        thread.join(10)
    assert not waiting_threads()


def test_a_run_is_awaited() -> None:
    async def main() -> None:
        future = session_of(GRAPH).run_async({"x": X})
        assert (await future)["y"].tolist() == [[-1, 2]]
        assert (await future)["y"].tolist() == [[-1, 2]], "again, when it is done"
        assert future.result()["y"].tolist() == [[-1, 2]]

    asyncio.run(main())


def test_several_runs_and_several_tasks() -> None:
    async def main() -> None:
        sessions = [session_of(GRAPH) for _ in range(4)]
        outputs = await asyncio.gather(*(s.run_async({"x": X * k}) for k, s in enumerate(sessions)))
        assert [out["y"].tolist() for out in outputs] == [[[-k, 2 * k]] for k in range(4)]
        shared = sessions[0].run_async({"x": X})

        async def take() -> dict[str, Any]:
            return await shared

        first, second = await asyncio.gather(take(), take())
        assert first["y"] is second["y"]

    asyncio.run(main())


def test_the_loop_goes_on_and_a_cancelled_task_ends_the_run() -> None:
    async def main() -> None:
        session = session_of(ENDLESS)
        turns = 0

        async def wait() -> Any:
            return await session.run_async(feed(True))

        task = asyncio.create_task(wait())
        for _ in range(20):
            await asyncio.sleep(0.002)
            turns += 1
        assert turns == 20
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.state["count"] == 0, "states are as before"
        await session.run_async(feed(False))  # the session is free at once
        assert session.state["count"] == 1

    asyncio.run(main())


def test_a_timeout_of_asyncio() -> None:
    async def main() -> None:
        session = session_of(ENDLESS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await session.run_async(feed(True))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.run_async(feed(True)), 0.05)
        await session.run_async(feed(False))

    asyncio.run(main())


def test_a_shield_keeps_the_run() -> None:
    async def main() -> None:
        session = session_of(ENDLESS)
        future = session.run_async(feed(True))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.shield(future)
        assert not future.done()
        future.cancel()
        with pytest.raises(pn.Cancelled):
            await future

    asyncio.run(main())


def test_errors_are_those_of_result() -> None:
    async def main() -> None:
        session = session_of(ENDLESS)
        with pytest.raises(pn.Cancelled, match="time"):
            await session.run_async(feed(True), timeout=0.05)
        token = pn.CancelToken()
        asyncio.get_running_loop().call_later(0.05, token.cancel)
        with pytest.raises(pn.Cancelled):
            await session.run_async(feed(True), cancel=token)
        with pytest.raises(pn.InvalidArgument):
            await session.run_async({})

    asyncio.run(main())


def test_the_end_of_the_program_ends_runs_that_tasks_still_await() -> None:
    """asyncio.run() cancels what is left, and returns when that has stopped."""
    session = session_of(ENDLESS)

    async def wait() -> Any:
        return await session.run_async(feed(True))

    async def main() -> asyncio.Task[Any]:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0.02)
        return task

    assert asyncio.run(main()).cancelled()
    session.run(feed(False))
    assert session.state["count"] == 1


def test_without_a_running_loop() -> None:
    future = session_of(GRAPH).run_async({"x": X})
    with pytest.raises(RuntimeError, match="no running event loop"):
        next(future.__await__())
    assert future.result()["y"].tolist() == [[-1, 2]]
