"""The vision route against a server that answers, hangs, loops, lies, and fails in its ways."""

from __future__ import annotations

import base64
import io
import json
import socket
import time
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ingest.ocr import Pixels
from ingest.parsed import Line, RawPage
from ingest.vlm.base import Endpoint, VlmOptions
from ingest.vlm.budget import Budget
from ingest.vlm.client import HttpVisionReader
from ingest.vlm.read import Clock
from ingest.vlm.session import VlmPolicy, VlmSession
from ragplane.core.errors import ConfigError
from ragplane.core.schema import BBox, PageSignals
from tests.integration.ingest.vlm_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    Handler,
    VlmServer,
    answers,
    closes_midway,
    drips,
    hangs,
    playing,
    says,
)

WIDTH, HEIGHT, DPI = 850, 1100, 100
HEADER = "Pier Berths Toll"
ROWS = ["North 12 318.40", "South 7 1,250.00", "East 31 42.75", "West 9 77.10"]
CONFIDENCE = 0.80  # so unsure a page is read again
SURE_CONFIDENCE = 0.97
ANSWER = """## Tolls of 2024

| Pier | Berths | Toll |
|---|---|---|
| North | 12 | 318.40 |
| South | 7 | 1,250.00 |
| East | 31 | 42.75 |
| West | 9 | 77.10 |
"""
LIE = ANSWER.replace("318.40", "381.40")
OPTIONS = VlmOptions(timeout_s=20.0, page_timeout_s=60.0, answer_tokens=700)
IMPATIENT = Clock(sleep_s=lambda seconds: None)


def page_and_image() -> tuple[RawPage, Pixels]:
    """A small table as OCR read it, and its picture."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=17)
    lines = []
    for row, text in enumerate(["Tolls of 2024", HEADER, *ROWS]):
        draw.text((100, 100 + 40 * row), text, font=font, fill="black")
        box = BBox(*(edge * 72 / DPI for edge in (100, 100 + 40 * row, 300, 120 + 40 * row)))
        sure = text[0] in "TN"
        lines.append(
            Line(text, box, 12.0, confidence=SURE_CONFIDENCE if sure else CONFIDENCE - 0.05)
        )
    page = RawPage(
        number=3,
        width_points=WIDTH * 72 / DPI,
        height_points=HEIGHT * 72 / DPI,
        rotation=0,
        route="ocr",
        reason="an image and no text layer",
        signals=PageSignals(0, 0, 0.0, 1.0, 0),
        seconds=0.0,
        paragraphs=(tuple(lines),),
        confidence=CONFIDENCE,
    )
    return page, np.asarray(image)


def improved(
    server: VlmServer,
    options: VlmOptions = OPTIONS,
    budget: Budget | None = None,
    clock: Clock = IMPATIENT,
) -> RawPage:
    """The page after the server had its say; pauses are not waited for."""
    reader = HttpVisionReader(Endpoint(server.url, "some-vlm", "s3cret"))
    session = VlmSession(reader, VlmPolicy(options), budget or Budget(), clock)
    try:
        return session.improve(*page_and_image())
    finally:
        reader.close()


def is_fallback(page: RawPage, *causes: str) -> bool:
    """Whether the page kept its OCR text and tells why."""
    before, _ = page_and_image()
    [note] = page.notes
    assert note.kind == "degraded"
    assert note.text.startswith("vlm: ")
    for cause in causes:
        assert cause in note.text
    return (page.route, page.paragraphs, page.blocks) == ("ocr", before.paragraphs, ())


def test_a_page_is_read_again_as_a_table_and_its_bill_is_kept() -> None:
    """Behaviours 7 and 8."""
    with playing(says(ANSWER)) as server:
        page = improved(server)
    assert (page.route, page.notes) == ("vlm", ())
    assert [block.kind for block in page.blocks] == ["heading", *["table_row"] * 5]
    assert page.blocks[2].text == "| North | 12 | 318.40 |"
    assert page.blocks[2].header == "| Pier | Berths | Toll |"
    assert page.vlm_tokens == PROMPT_TOKENS + COMPLETION_TOKENS
    assert "prompt tokens estimated, 1,290 billed" in page.reason


def test_a_request_is_what_openai_compatible_servers_take() -> None:
    """Behaviour 7."""
    with playing(says(ANSWER)) as server:
        improved(server)
    [request], [headers] = server.requests, server.headers
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["max_tokens"], request["temperature"]) == ("some-vlm", 700, 0)
    assert headers["authorization"] == "Bearer s3cret"
    system, user = request["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    text, image = user["content"]
    assert (text["type"], image["type"]) == ("text", "image_url")
    head, content = image["image_url"]["url"].split(",")
    assert head == "data:image/png;base64"
    shown = Image.open(io.BytesIO(base64.b64decode(content)))
    assert shown.size == (868, 1120)  # 31 x 40 patches


@pytest.mark.parametrize("misbehaves", [hangs, drips])
def test_a_server_that_hangs_costs_the_pages_time_at_most(
    misbehaves: Callable[[Handler], None],
) -> None:
    """Behaviour 8."""
    started = time.monotonic()
    with playing(misbehaves) as server:
        page = improved(server, VlmOptions(timeout_s=0.3, page_timeout_s=2.0))
        assert is_fallback(page, f"ReadTimeout {server.url}/chat/completions: ")
        assert time.monotonic() - started < 10.0
    assert 1 <= len(server.requests) <= 3


def test_a_server_that_lies_is_not_believed() -> None:
    """Behaviour 8."""
    with playing(says(LIE)) as server:
        page = improved(server)
    assert is_fallback(page, "the answer has 381.40 where the OCR was sure of 318.40")
    assert len(server.requests) == 3
    assert page.vlm_tokens == 3 * (PROMPT_TOKENS + COMPLETION_TOKENS)


def test_a_server_that_lies_once_is_believed_the_second_time() -> None:
    """Behaviour 8."""
    with playing(says(LIE), says(ANSWER)) as server:
        page = improved(server)
    assert page.route == "vlm"
    assert [request["temperature"] for request in server.requests] == [0.0, 0.3]


def test_a_server_that_loops_is_not_believed() -> None:
    """Behaviour 8."""
    with playing(says(ANSWER + "| North | 12 | 318.40 |\n" * 200, "length")) as server:
        page = improved(server)
    assert is_fallback(page, "the answer repeats")
    assert len(server.requests) == 3


def test_text_for_a_blank_page_and_none_for_a_full_one_are_not_believed() -> None:
    """Behaviour 8."""
    with playing(says("(blank)")) as server:
        assert is_fallback(improved(server), "are not in the answer")
    page, _ = page_and_image()
    paper = np.full((HEIGHT, WIDTH, 3), 250, dtype=np.uint8)
    with playing(says("All warfare is based on deception.")) as server:
        reader = HttpVisionReader(Endpoint(server.url, "some-vlm"))
        read = VlmSession(reader, VlmPolicy(OPTIONS), clock=IMPATIENT).improve(page, paper)
        reader.close()
        assert is_fallback(read, "the answer has text, and the page is blank")


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    """Behaviour 8."""
    started = time.monotonic()
    with playing(answers(429, b"slow down", retry_after="1"), says(ANSWER)) as server:
        page = improved(server, clock=Clock())
    assert page.route == "vlm"
    assert time.monotonic() - started >= 1.0
    assert page.vlm_tokens == PROMPT_TOKENS + COMPLETION_TOKENS


@pytest.mark.parametrize(
    ("misbehaves", "tries", "cause"),
    [
        (answers(500, b"CUDA out of memory"), 3, "answered 500: CUDA out of memory"),
        (answers(503, b"", retry_after="3600"), 1, "no time is left for try 2"),
        (answers(401, b"no such key"), 1, "answered 401: no such key"),
        (answers(404, b"no such model"), 1, "answered 404: no such model"),
        (answers(302, b"", location="http://elsewhere/"), 1, "answered 302"),
        (answers(200, b"<html>"), 3, "answered without a completion: Invalid JSON"),
        (answers(200, b'{"choices": []}'), 3, "answered without a completion: List should have"),
        (answers(200, json.dumps({"choices": [{"message": 1}]}).encode()), 3, "a completion"),
        (closes_midway, 3, "RemoteProtocolError http://127.0.0.1"),
        (says(None), 3, "are not in the answer"),
        (says("I'm sorry, but I can't help with that."), 3, "the model refused"),
        (says(ANSWER, "length"), 1, "cut off at the limit of its tokens"),
    ],
)
def test_whatever_else_goes_wrong_is_named_and_the_ocr_text_is_kept(
    misbehaves: Callable[[Handler], None], tries: int, cause: str
) -> None:
    """Behaviours 8 and 25."""
    with playing(misbehaves) as server:
        page = improved(server)
    assert is_fallback(page, cause)
    assert len(server.requests) == tries
    assert "s3cret" not in repr(page)


def test_an_answer_without_end_is_not_read_to_the_end() -> None:
    """Behaviour 8."""
    with playing(answers(200, b" " * (9 << 20))) as server:
        page = improved(server)
    assert is_fallback(page, "answered more than 8,388,608 bytes")


def test_nobody_there_is_named() -> None:
    """Behaviours 8 and 25."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        server = VlmServer([], url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        page = improved(server)
    assert is_fallback(page, f"ConnectError {server.url}/chat/completions: ")
    assert page.vlm_tokens == 0


def test_over_budget_nothing_is_sent() -> None:
    """Behaviour 3."""
    with playing(says(ANSWER)) as server:
        page = improved(server, budget=Budget(tenant_tokens=10_000, tenant_spent=9_000))
    assert is_fallback(page, "the tenant's budget of 10,000 vision tokens has 1,000 left")
    assert server.requests == []


def test_an_address_that_is_none_is_told_at_once_and_no_secret_is_shown() -> None:
    with pytest.raises(ConfigError, match="not an address"):
        HttpVisionReader(Endpoint("localhost:8000/v1", "some-vlm"))
    assert "s3cret" not in repr(Endpoint("http://a/v1", "some-vlm", "s3cret"))
    with playing(answers(500)) as server:
        server.url = server.url.replace("//", "//user:s3cret@")
        page = improved(server)
    assert "s3cret" not in page.notes[0].text
