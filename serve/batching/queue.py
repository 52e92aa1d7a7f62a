"""The queue between the event loop and the worker thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ragplane.core.errors import UnavailableError
from serve.backend import TokenIds
from serve.batching.policy import compose
from serve.batching.work import Waiting

# How many of the oldest are looked at to find equal lengths. More would sort better, and cost more.
WINDOW = 256


@dataclass(frozen=True, slots=True)
class Taken:
    """One micro-batch: groups of equal inputs. And what was dropped on the way to it."""

    groups: tuple[tuple[Waiting, ...], ...]
    cancelled: int
    expired: tuple[Waiting, ...]


class WorkQueue:
    """Thread-safe; `put` never blocks, `take` waits for work."""

    def __init__(self, *, budget_tokens: int) -> None:
        """A micro-batch costs `budget_tokens` padded tokens at most, or is one longer input."""
        self.budget_tokens = budget_tokens
        self._items: list[Waiting] = []
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    @property
    def tokens(self) -> int:
        """Tokens that wait, without padding."""
        with self._changed:
            return sum(len(item.work.ids) for item in self._items)

    def put(self, items: Sequence[Waiting]) -> None:
        """Append all of `items`. Raises UnavailableError once closed."""
        with self._changed:
            if self._closed:
                raise UnavailableError("the encoder is closed")
            self._items.extend(items)
            self._changed.notify()

    def take(self) -> Taken | None:
        """Wait for work, then compose a micro-batch from all that waits now; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed)
            if self._closed:
                return None
            cancelled, expired = self._drop()
            return Taken(self._compose(), cancelled, expired)

    def clear(self) -> list[Waiting]:
        """Remove and return everything."""
        with self._changed:
            items, self._items = self._items, []
            return items

    def close(self) -> None:
        """End `take`, now and later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _drop(self) -> tuple[int, tuple[Waiting, ...]]:
        """Remove what nobody waits for any more: how many were cancelled, and what expired."""
        now = time.monotonic()
        waiting = [item for item in self._items if not item.future.done()]
        cancelled = len(self._items) - len(waiting)
        expired = tuple(i for i in waiting if i.deadline_s is not None and i.deadline_s < now)
        late = set(expired)
        self._items = [item for item in waiting if item not in late]
        return cancelled, expired

    def _compose(self) -> tuple[tuple[Waiting, ...], ...]:
        equal: dict[TokenIds, list[Waiting]] = {}
        for item in self._items[:WINDOW]:
            equal.setdefault(item.work.ids, []).append(item)
        lengths = [len(ids) for ids in equal]
        groups = list(equal.values())
        chosen = [groups[i] for i in compose(lengths, budget_tokens=self.budget_tokens)]
        taken = {item for group in chosen for item in group}
        self._items = [item for item in self._items if item not in taken]
        return tuple(tuple(group) for group in chosen)
