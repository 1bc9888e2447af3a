"""Collects what concurrent episodes ask for and hands it over in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Request = TypeVar("Request")
Reply = TypeVar("Reply")


class Batcher(Generic[Request, Reply]):
    """Turns single async calls into batched blocking ones, which run in a thread, one at a time.

    A batch is whatever waits when the last one is done, at most `size` requests, after every episode that can go on has had its turn
    to ask.
    """

    def __init__(self, answer: Callable[[Sequence[Request]], Sequence[Reply]], size: int) -> None:
        self._answer, self._size = answer, size
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._running: asyncio.Task[None] | None = None

    async def ask(self, request: Request) -> Reply:
        """The reply to one request. An exception of the batch call reaches every request of that batch."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                await settle(self._waiting)
                batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
                try:
                    replies = await asyncio.to_thread(self._answer, [request for request, _ in batch])
                except Exception as error:
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                    continue
                for (_, future), reply in zip(batch, replies, strict=True):
                    if not future.done():
                        future.set_result(reply)
                await settle(self._waiting)
        finally:
            self._running = None


async def settle(waiting: Sequence[object]) -> None:
    """Lets the other tasks run until `waiting`, which they add to, has stopped growing."""
    count = -1
    while count != len(waiting):
        count = len(waiting)
        for _ in range(3):
            await asyncio.sleep(0)
