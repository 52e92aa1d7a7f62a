"""The library for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ragplane.core.errors import UnavailableError
from ragplane.plane import Plane

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[Plane, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncPlane, P], T]:
    """The blocking twin of a method of Plane, with its signature and its docstring."""

    @wraps(method)
    def call(self: SyncPlane, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(method(self.plane, *args, **kwargs))

    return call


class SyncPlane:
    """A plane whose calls block. It runs the plane's event loop in a thread of its own."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """As `Plane.aclose`; also ends the thread. Closing twice does nothing."""
        if self._loop.is_closed():
            return
        try:
            self.run(self.plane.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    ingest = _blocking(Plane.ingest)
    search = _blocking(Plane.search)
    context = _blocking(Plane.context)
    ask = _blocking(Plane.ask)
    status = _blocking(Plane.status)
    corpora = _blocking(Plane.corpora)
    verify = _blocking(Plane.verify)
    delete = _blocking(Plane.delete)
    reembed = _blocking(Plane.reembed)
    drop_unused = _blocking(Plane.drop_unused)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the plane to its end; an interrupt cancels it.

        Raises UnavailableError once the plane is closed.
        """
        if self._loop.is_closed():
            work.close()
            raise UnavailableError("the synchronous plane is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
