"""From what a model wrote to the Markdown it was asked for, before anything is judged."""

from __future__ import annotations

import re

from ingest.vlm.prompts import BLANK

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_INTRODUCTION = re.compile(
    r"\A\s*(?:sure|certainly|of course|okay|here(?:'s| is| are)|below is|the following is)\b"
    r"[^\n]{0,120}:[ \t]*(?:\n|\Z)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ ]{0,3}```([\w-]*)[ \t]*$", re.MULTILINE)
_BLANK = re.compile(r"[\W_]*(?:blank|empty)(?:[ ]page)?[\W_]*", re.IGNORECASE)
_PICTURE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|<img\b[^>]*>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_INLINE_TAG = re.compile(r"</?(?:sup|sub|b|i|u|em|strong|span|small|center)\b[^>]*>", re.IGNORECASE)


def clean(text: str) -> str:
    """The Markdown of an answer; "" for one that says that the page is blank.

    Left out: a thought, an introduction, a fence around the whole, descriptions of pictures,
    HTML's inline marks, and characters that no store takes.
    """
    text = text.encode("utf-8", "ignore").decode("utf-8").replace("\x00", "")
    text = text.replace("\r\n", "\n")
    text = _unfenced(_INTRODUCTION.sub("", _THOUGHT.sub("", text)).strip())
    if text == BLANK or _BLANK.fullmatch(text):
        return ""
    text = _COMMENT.sub("", _PICTURE.sub("", text))
    return _INLINE_TAG.sub("", _LINE_BREAK.sub(" ", text)).strip()


def _unfenced(text: str) -> str:
    """`text` without the fence around it; a page that is nothing but code keeps its own."""
    fences = list(_FENCE.finditer(text))
    if not fences or fences[0].start() != 0:
        return text
    language, last = fences[0][1].lower(), fences[-1]
    if language not in ("markdown", "md") and not (language == "" and len(fences) <= 2):
        return text
    is_closed = len(fences) > 1 and last[1] == "" and last.end() == len(text)
    return text[fences[0].end() : last.start() if is_closed else len(text)].strip()
