"""A vision model for tests: gives prepared replies."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.vlm.base import VlmAnswer, VlmCall, VlmReply


class FakeVisionReader:
    """Gives `replies` in turn, the last one for ever, and remembers what it was asked.

    A reply that is a text stands for a whole answer that billed the image's tokens and one token
    for each word.
    """

    def __init__(self, *replies: VlmReply | str) -> None:
        """At least one reply."""
        self._replies: Sequence[VlmReply | str] = replies
        self.calls: list[VlmCall] = []
        self.closed = False

    def read(self, call: VlmCall) -> VlmReply:
        """See VisionReader."""
        reply = self._replies[min(len(self.calls), len(self._replies) - 1)]
        self.calls.append(call)
        if isinstance(reply, str):
            return VlmAnswer(reply, "stop", call.image.tokens, len(reply.split()))
        return reply

    def close(self) -> None:
        """See VisionReader."""
        self.closed = True
