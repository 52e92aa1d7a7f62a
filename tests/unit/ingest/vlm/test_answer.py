"""What models write around the Markdown they were asked for."""

from __future__ import annotations

import pytest

from ingest.vlm.answer import clean


@pytest.mark.parametrize(
    ("answer", "markdown"),
    [
        ("# Title\n\ntext", "# Title\n\ntext"),
        ("```markdown\n# Title\n\ntext\n```", "# Title\n\ntext"),
        ("```\n# Title\n```", "# Title"),
        ("```md\n# Title\n```python\nx = 1\n```\nend\n```", "# Title\n```python\nx = 1\n```\nend"),
        ("```markdown\n# cut off", "# cut off"),
        ("Here is the Markdown of the page:\n\n```markdown\n# Title\n```", "# Title"),
        ("Sure, this is the page:\n# Title", "# Title"),
        ("<think>a table, perhaps\n</think>\n# Title", "# Title"),
        ("```python\nx = 1\n```", "```python\nx = 1\n```"),
        ("```\na\n```\nbetween\n```\nb\n```", "```\na\n```\nbetween\n```\nb\n```"),
        ("before ![a harbour at dawn](x.png) after", "before  after"),
        ("| a<br>b | m<sup>2</sup> |", "| a b | m2 |"),
        ("text <!-- Page 3 --> more", "text  more"),
        ("a\x00b\ud800c\r\nd", "abc\nd"),
        ("The rules are as follows:\n1. one", "The rules are as follows:\n1. one"),
    ],
)
def test_only_the_page_is_left(answer: str, markdown: str) -> None:
    assert clean(answer) == markdown


@pytest.mark.parametrize(
    "answer", ["(blank)", "", " \n", "Blank page.", "```\n(blank)\n```", "[Empty]"]
)
def test_an_answer_for_a_blank_page_is_empty(answer: str) -> None:
    """Behaviour 8."""
    assert clean(answer) == ""
