"""The encoder without HTTP, in a process of its own: same batches, as many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from ragplane.core.config import load_settings
from serve.local import LocalEncoder
from tests.bench.peers.lines import answer
from tests.bench.serve.options import BULK_CLIENTS, CLIENT_BATCH
from tests.bench.texts import in_batches


def main() -> None:
    """Open the encoder, then answer."""
    with asyncio.Runner() as runner:
        encoder = runner.run(LocalEncoder.open(load_settings()))

        def bulk(texts: Sequence[str]) -> dict[str, Any]:
            started = time.perf_counter()
            runner.run(_bulk(encoder, texts))
            return {"seconds": time.perf_counter() - started}

        answer({"bulk": bulk})
        runner.run(encoder.aclose())


async def _bulk(encoder: LocalEncoder, texts: Sequence[str]) -> None:
    batches = in_batches(texts, CLIENT_BATCH)

    async def client() -> None:
        for batch in batches:
            await encoder.embed(batch)

    await asyncio.gather(*(client() for _ in range(BULK_CLIENTS)))


if __name__ == "__main__":
    main()
