"""Self-attention over packed inputs: no row is padding, and no input sees another.

PyTorch's CPU kernel is up to twice as fast when the length is a multiple of 16, and slow for very
short ones. So rows are gathered into windows: an input of its own, rounded up to 16 slots, or
several short inputs that share 64 slots. A mask hides the slots of others. Windows of equal width
make one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

# From queries, keys and values [rows, 3 * hidden], side by side, to the context [rows, hidden].
# Rows beyond the inputs become zero.
Attend = Callable[[Tensor], Tensor]

_STEP = 16
_SHARED_WIDTH = 64


def attention(lengths: Sequence[int], heads: int, dtype: torch.dtype, device: str) -> Attend:
    """Attention over inputs packed one after the other; fastest when `lengths` ascends."""
    return partial(_attend, groups=plan_windows(lengths, dtype, device), heads=heads)


@dataclass(frozen=True, slots=True)
class WindowGroup:
    """Windows of equal width over the packed rows `start` to `stop`.

    `slots` int64 [windows * width]: the row of each slot, counted from `start`. `rows` int64
    [stop - start]: the slot of each row. None, None: the rows are the slots. `mask` is added to the
    scores, [windows, 1, 1 or width, width]; None: nothing to hide.
    """

    start: int
    stop: int
    windows: int
    width: int
    slots: Tensor | None
    rows: Tensor | None
    mask: Tensor | None


def plan_windows(lengths: Sequence[int], dtype: torch.dtype, device: str) -> list[WindowGroup]:
    """The windows for inputs packed one after the other."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    groups = []
    start = 0
    for width, windows in groupby(_windows(lengths), key=_width):
        rows = np.array([sum(window) for window in windows])
        stop = start + int(rows.sum())
        groups.append(_group(start, width, rows, owners[start:stop], dtype, device))
        start = stop
    return groups


def _attend(projected: Tensor, groups: Sequence[WindowGroup], heads: int) -> Tensor:
    total, hidden = projected.shape[0], projected.shape[1] // 3
    context = projected.new_empty(total, hidden)
    context[groups[-1].stop :] = 0
    for group in groups:
        rows = projected[group.start : group.stop]
        if group.slots is not None:
            rows = rows.index_select(0, group.slots)
        query, key, value = rows.view(group.windows, group.width, 3, heads, -1).permute(
            2, 0, 3, 1, 4
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=group.mask)
        seen = seen.transpose(1, 2).reshape(-1, hidden)
        if group.rows is None:
            context[group.start : group.stop] = seen
        else:
            torch.index_select(seen, 0, group.rows, out=context[group.start : group.stop])
    return context


def _windows(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The lengths that share each window: as many neighbours as fit, or one alone."""
    window: list[int] = []
    used = 0
    for length in lengths:
        if window and used + length > _SHARED_WIDTH:
            yield window
            window, used = [], 0
        window.append(length)
        used += length
    if window:
        yield window


def _width(window: Sequence[int]) -> int:
    return _SHARED_WIDTH if len(window) > 1 else -(-window[0] // _STEP) * _STEP


def _group(
    start: int,
    width: int,
    rows: NDArray[np.int64],
    owners: NDArray[np.int64],
    dtype: torch.dtype,
    device: str,
) -> WindowGroup:
    """The group whose windows hold `rows` rows each, which belong to the inputs `owners`."""
    windows, total = len(rows), int(rows.sum())
    slot = np.arange(width)
    filled = slot < rows[:, None]
    # A slot that is not filled repeats the window's last row: finite, and hidden by the mask.
    source = (rows.cumsum() - rows)[:, None] + np.minimum(slot, rows[:, None] - 1)
    if owners[-1] - owners[0] >= windows:  # more inputs than windows
        owner = np.where(filled, owners[source], -1)
        seen = owner[:, :, None] == owner[:, None, :]
    else:
        seen = filled[:, None, :]
    tight = bool(filled.all())
    return WindowGroup(
        start=start,
        stop=start + total,
        windows=windows,
        width=width,
        slots=None if tight else torch.from_numpy(source.reshape(-1)).to(device),
        rows=None if tight else torch.from_numpy(np.flatnonzero(filled)).to(device),
        mask=None if seen.all() else _added(seen, dtype, device),
    )


def _added(seen: NDArray[np.bool_], dtype: torch.dtype, device: str) -> Tensor:
    mask = np.where(seen, np.float32(0), np.float32(-np.inf))[:, None]
    return torch.from_numpy(mask).to(device, dtype)
