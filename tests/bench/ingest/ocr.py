"""Wall time of the OCR route against RapidOCR called directly with the best settings found.

Both read the same page images in the same processes of one thread each, in turns, so that the
load of the machine is the same for both. `python -m tests.bench.ingest.ocr --pages 8`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ingest.ocr import Pixels, make_engine
from ingest.scanned import read_page
from tests.unit.ingest.pages import Style, document
from tests.unit.ingest.scans import render

_DPI = 150.0
_STYLE = Style(columns=2)
_SIZE = _STYLE.width_points, _STYLE.height_points
_BEST = {
    "Global.log_level": "error",
    "Global.use_cls": False,
    "Global.max_side_len": 4000,
    "Det.limit_type": "max",
    "Det.limit_side_len": 1280,  # of 1,754 pixels, the long side of A4 at 150 dpi
    "Rec.rec_batch_num": 1,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


@dataclass(frozen=True, slots=True)
class Result:
    """Medians over the rounds; `ratio` is of each round's own two times."""

    pages: int
    processes: int
    ours_s_per_page: float
    rapidocr_s_per_page: float
    ratio: float
    busy_share: float


def measure(pages: int, processes: int, rounds: int) -> Result:
    """Read `pages` pages with both, `rounds` times. `busy_share` is ours, of all processes."""
    ours, direct, ratios, busy = [], [], [], []
    images = [render(document(seed, style=_STYLE)[0], _DPI)[0] for seed in range(pages)]
    with multiprocessing.get_context("spawn").Pool(processes, _hold, (images,)) as pool:
        for task in (_ours, _direct):
            pool.map(task, range(processes), chunksize=1)  # loads the engines
        for turn in range(rounds):
            tasks = (_ours, _direct) if turn % 2 == 0 else (_direct, _ours)
            taken = {task: _timed(pool, task, pages) for task in tasks}
            (wall, cpu), (other, _) = taken[_ours], taken[_direct]
            ours.append(wall / pages)
            direct.append(other / pages)
            ratios.append(wall / other)
            busy.append(cpu / wall / processes)
    return Result(pages, processes, median(ours), median(direct), median(ratios), median(busy))


_IMAGES: list[Pixels] = []  # of the pages, in each process


def _hold(images: list[Pixels]) -> None:
    _IMAGES.extend(images)


def _timed(pool: Any, task: Callable[[int], float], pages: int) -> tuple[float, float]:
    """Seconds by the clock, and of the processor in all processes."""
    started = time.perf_counter()
    cpu = sum(pool.imap_unordered(task, range(pages)))
    return time.perf_counter() - started, cpu


def _ours(page: int) -> float:
    image, engine = _IMAGES[page], _ours_engine()
    started = time.process_time()
    read_page(engine, lambda _: image, _SIZE, 12_000_000, 1, finest_dpi=_DPI)
    return time.process_time() - started


def _direct(page: int) -> float:
    image, engine = _IMAGES[page], _direct_engine()
    started = time.process_time()
    engine(np.ascontiguousarray(image[:, :, ::-1]))
    return time.process_time() - started


@cache
def _ours_engine() -> Any:
    return make_engine("rapid", 1, Path())


@cache
def _direct_engine() -> Any:
    from rapidocr import RapidOCR

    return RapidOCR(params=_BEST)


def main() -> None:
    """Print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=8)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(asdict(measure(options.pages, options.processes, options.rounds))))


if __name__ == "__main__":
    main()
