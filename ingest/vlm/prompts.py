"""What the model is told. The same for every page, and in front, so that servers can cache it."""

from __future__ import annotations

from typing import Any

BLANK = "(blank)"

INSTRUCTIONS = f"""You transcribe one page of a document from its image into Markdown.

- Write every piece of text that is printed, drawn or handwritten on the page, in reading order: \
column by column, top to bottom. Headers, footers and page numbers too.
- Keep the language, spelling, capitals, punctuation and digits exactly as they are. Do not \
translate, correct, complete, summarise or calculate.
- Headings are # to ######, lists are - or 1., code is fenced.
- A table is a Markdown table with | and one header row. A cell without text stays empty. Of a \
merged cell, write the text once.
- Of a figure or chart, write only the text that stands in it. Do not describe pictures.
- Where something cannot be read, write [illegible]. Never guess, and never add text that is not \
on the page.
- If the page holds no text, answer {BLANK} and nothing else.
- Answer with the Markdown only: no introduction, no comment, no fence around the whole."""

REQUEST = "Transcribe this page."


def messages(data_url: str) -> list[dict[str, Any]]:
    """Chat messages for a page, OpenAI's form; only the image at the end differs."""
    return [
        {"role": "system", "content": INSTRUCTIONS},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": REQUEST},
                {"type": "image_url", "image_url": {"url": data_url}},
            ],
        },
    ]
