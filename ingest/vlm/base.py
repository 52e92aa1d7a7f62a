"""The one seam for "something that reads a page image and writes Markdown"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ingest.ocr import Pixels
from ingest.parsed import RawPage

MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is served: a URL up to and including `/v1`, and the name it has there."""

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class VlmOptions:
    """How pages are shown and how long they may take.

    `patch_pixels` is the side of the square that becomes one visual token: 28 for Qwen2.5-VL, 32
    for Qwen3-VL. `timeout_s` bounds one call, `page_timeout_s` all tries of a page with their
    pauses, `document_timeout_s` the pages of a document.
    """

    max_pixels: int = 1_605_632
    patch_pixels: int = 28
    answer_tokens: int = 4096
    timeout_s: float = 60.0
    page_timeout_s: float = 120.0
    document_timeout_s: float = 300.0


@dataclass(frozen=True, slots=True)
class PageImage:
    """An encoded page: a `data:` URL, the sides in pixels, and the visual tokens they make."""

    data_url: str
    width_pixels: int
    height_pixels: int
    tokens: int


@dataclass(frozen=True, slots=True)
class VlmCall:
    """One try at one page."""

    image: PageImage
    temperature: float
    answer_tokens: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class VlmAnswer:
    """What the model wrote. The billed tokens are None where the server did not tell."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None

    @property
    def billed_tokens(self) -> int | None:
        """Prompt and completion together."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class VlmFailure:
    """A call without an answer, as a value: what failed decides what is done next.

    `cause` names the error and the address. `retry_after_s` is the server's own wish. `worked`
    means that the model may have read the page, and that the call is paid for. `of_page` means
    that another page may well be answered.
    """

    cause: str
    retriable: bool
    retry_after_s: float | None = None
    worked: bool = False
    of_page: bool = False


VlmReply = VlmAnswer | VlmFailure


class VisionReader(Protocol):
    """Asks a vision model for the Markdown of a page."""

    def read(self, call: VlmCall) -> VlmReply:
        """One try, within about `call.timeout_s`. Failures are returned, not raised."""
        ...

    def close(self) -> None:
        """Release connections."""
        ...


class SecondReading(Protocol):
    """What a reader hands the pages to that it read by OCR (`VlmSession` is one)."""

    def improve(self, page: RawPage, image: Pixels) -> RawPage:
        """The page as a vision model reads it where OCR is not enough; else `page` itself.

        `image` is the page as the boxes of its lines lie, upright, at any resolution.
        """
        ...
