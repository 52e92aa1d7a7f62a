"""Whether a model's answer is to be believed: pure functions over it and what OCR saw.

A vision model does not misread as OCR does, in odd letters: it writes fluent text that is not on
the page. So an answer is held against the page's other reading, both ways: what OCR saw must be
there, and what stands there must have been seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from ingest.parsed import Line
from ingest.vlm.repetition import Repetition, longest_loop, repeated_line

_PIECE_CHARACTERS = 8
_NUMBER = re.compile(r"\d(?:[.,'’]?\d)*")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?(?!\d)")
_GROUP_MARK = re.compile(r"\.(?=\d{3}(?!\d))")
_LETTERS = re.compile(r"[^\W\d_]+")
_REFUSAL = re.compile(
    r"\A\W*(?:i['’]?m (?:sorry|unable|not able)|i (?:can(?:no|['’])t|am (?:sorry|unable|not able))|"
    r"sorry\b|unfortunately\b|as an ai\b|(?:the|this) (?:image|page) (?:is too|appears|seems|shows|"
    r"does not|contains no))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CheckThresholds:
    """Borders of what is accepted. Confidences and shares run from 0 to 1.

    OCR lines from `number_confidence` and `word_confidence` up are witnesses: of what they hold,
    `missing_*` may be absent from the answer, but no number may have become another. Of the
    answer, `unseen_*` may be in no line, or as much as the share of the page in lines below
    `legible_confidence`; where that is over `blind_share`, what OCR did not see says nothing. Else
    the answer has `times_longer` as many letters as OCR saw at most. A loop is `loop_times` and
    `loop_words` long at least; a refusal has `refusal_words` at most, and no page has over
    `page_characters`.
    """

    number_confidence: float = 0.95
    word_confidence: float = 0.90
    legible_confidence: float = 0.75
    missing_numbers: float = 0.05
    missing_words: float = 0.20
    unseen_numbers: float = 0.25
    unseen_words: float = 0.40
    blind_share: float = 0.50
    times_longer: float = 1.5
    line_times: int = 6
    loop_times: int = 4
    loop_words: int = 20
    refusal_words: int = 80
    page_characters: int = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an answer is not accepted. `final`: another try would end the same way."""

    reason: str
    final: bool = False


@dataclass(frozen=True, slots=True)
class Witness:
    """What OCR saw: texts that are sure enough to be missed in an answer, and everything.

    `illegible_share` of the characters are in lines that say little; it is 1 where OCR saw
    nothing at all.
    """

    sure_numbers: str
    sure_words: str
    all: str
    illegible_share: float


def witness(lines: Sequence[Line], thresholds: CheckThresholds) -> Witness:
    """The lines of a page as a witness. One without a confidence is from a text layer, and sure."""
    characters = sum(len(line.text) for line in lines)
    legible = _at_least(thresholds.legible_confidence, lines)
    return Witness(
        sure_numbers=_joined(_at_least(thresholds.number_confidence, lines)),
        sure_words=_joined(_at_least(thresholds.word_confidence, lines)),
        all=_joined(lines),
        illegible_share=1 - sum(len(line.text) for line in legible) / characters
        if characters
        else 1.0,
    )


def _at_least(confidence: float, lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.confidence is None or line.confidence >= confidence]


def find_fault(
    answer: str,
    finish_reason: str,
    seen: Witness,
    *,
    blank: bool,
    thresholds: CheckThresholds,
) -> Fault | None:
    """The first reason not to accept a cleaned answer, None if there is none.

    `blank`: the pixels of the page show nothing.
    """
    if len(answer) > thresholds.page_characters:
        return Fault(f"the answer has {len(answer):,} characters")
    loop = _loop(answer, seen, thresholds)
    if loop is not None:
        what = " ".join(loop.words)[:60]
        return Fault(f"the answer repeats {what!r} {loop.times} times")
    if finish_reason == "length":
        return Fault("the answer is cut off at the limit of its tokens", final=True)
    if finish_reason == "content_filter":
        return Fault("the model's filter held the answer back", final=True)
    if blank and answer:
        return Fault("the answer has text, and the page is blank")
    if _is_refusal(answer, seen, thresholds):
        return Fault(f"the model refused: {answer.splitlines()[0][:80]!r}")
    return (
        _number_fault(answer, seen, thresholds)
        or _word_fault(answer, seen, thresholds)
        or _length_fault(answer, seen, thresholds)
    )


def _loop(answer: str, seen: Witness, limits: CheckThresholds) -> Repetition | None:
    """A repetition that the page does not have itself."""
    said = squeezed(seen.all)
    line = repeated_line(answer.splitlines())
    if line and line.times >= limits.line_times and not _seen_as_often(line, said):
        return line
    loop = longest_loop([word for word in answer.split() if any(map(str.isalnum, word))])
    if loop is None or loop.times < limits.loop_times:
        return None
    is_long = loop.times * len(loop.words) >= limits.loop_words
    return loop if is_long and not _seen_as_often(loop, said) else None


def _seen_as_often(repetition: Repetition, said: str) -> bool:
    """Whether OCR saw each word at least half as often."""
    words = filter(None, map(squeezed, repetition.words))
    return all(2 * said.count(word) >= repetition.times for word in words)


def _is_refusal(answer: str, seen: Witness, limits: CheckThresholds) -> bool:
    opening = _REFUSAL.match(answer)
    if opening is None or len(answer.split()) > limits.refusal_words:
        return False
    return squeezed(opening[0]) not in squeezed(seen.all)


def _number_fault(answer: str, seen: Witness, limits: CheckThresholds) -> Fault | None:
    missing, unseen = _absent(seen.sure_numbers, answer), _absent(answer, seen.all)
    for number, other in product(missing, unseen):
        if _alike(number, other):
            return Fault(f"the answer has {other} where the OCR was sure of {number}")
    expected = len(_NUMBER.findall(seen.sure_numbers))
    if len(missing) > limits.missing_numbers * expected:
        return Fault(f"of the page's {expected} numbers, {_some(missing)} are not in the answer")
    allowed = _allowed(limits.unseen_numbers, seen, limits)
    if len(unseen) > allowed * len(_NUMBER.findall(answer)):
        return Fault(f"the OCR did not see {_some(unseen)}, which the answer has")
    return None


def _absent(text: str, other: str) -> list[str]:
    """Numbers of `text` that `other` does not have, whichever of them has its thousands apart."""
    there = {*numbers(other), *numbers(_GROUPED.sub(_ungrouped, _normal(other)))}
    apart = _GROUPED.sub(
        lambda group: "" if numbers(_ungrouped(group))[0] in there else group[0], _normal(text)
    )
    return [number for number in numbers(apart) if number not in there]


def _alike(number: str, other: str) -> bool:
    """Whether one may be the other, misread or made up: half of its characters are the same."""
    if number.replace(".", "") == other.replace(".", ""):
        return True
    same = sum(a == b for a, b in zip(number, other, strict=False))
    return len(number) == len(other) and 2 * same >= len(number)


def numbers(text: str) -> list[str]:
    """The numbers of a text, without marks between thousands and with one decimal mark."""
    found = (re.sub("[,'’]", ".", number) for number in _NUMBER.findall(_normal(text)))
    return [_GROUP_MARK.sub("", number) for number in found]


def _ungrouped(group: re.Match[str]) -> str:
    return group[0].replace(" ", "")


def _word_fault(answer: str, seen: Witness, limits: CheckThresholds) -> Fault | None:
    missing = _missing_share(seen.sure_words, answer)
    if missing > limits.missing_words:
        return Fault(f"{missing:.0%} of the words that the OCR was sure of are not in the answer")
    unseen = _missing_share(answer, seen.all)
    if unseen > _allowed(limits.unseen_words, seen, limits):
        return Fault(f"the OCR did not see {unseen:.0%} of the answer's words")
    return None


def _allowed(unseen: float, seen: Witness, limits: CheckThresholds) -> float:
    """The share of an answer that OCR need not have seen."""
    return 1.0 if is_blind(seen, limits) else max(unseen, seen.illegible_share)


def is_blind(seen: Witness, limits: CheckThresholds) -> bool:
    """Whether OCR read too little of the page to contradict an answer."""
    return seen.illegible_share > limits.blind_share


def _length_fault(answer: str, seen: Witness, limits: CheckThresholds) -> Fault | None:
    """A page that was written twice: every word of it was seen, and no phrase is a loop."""
    written, read = len(squeezed(answer)), len(squeezed(seen.all))
    if is_blind(seen, limits) or written <= limits.times_longer * read:
        return None
    return Fault(f"the answer has {written:,} letters where the OCR saw {read:,}")


def _missing_share(text: str, other: str) -> float:
    """Share of the letters of `text` in words that `other` does not hold.

    Spaces are not compared, since OCR loses them; nor short words, which are in any text. Long
    runs (scripts without spaces) are compared by pieces.
    """
    pieces = list(_pieces(text))
    letters = sum(map(len, pieces))
    held = squeezed(other)
    missing = sum(len(piece) for piece in pieces if piece not in held)
    return missing / letters if letters else 0.0


def _pieces(text: str) -> Iterator[str]:
    for word in _LETTERS.findall(_normal(text)):
        for start in range(0, len(word), _PIECE_CHARACTERS):
            piece = word[start : start + _PIECE_CHARACTERS]
            if len(piece) > 2 or not piece.isascii():
                yield piece


def squeezed(text: str) -> str:
    """The letters and digits of a text, in one run and one case."""
    return "".join(filter(str.isalnum, _normal(text)))


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _joined(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def _some(numbers: Sequence[str]) -> str:
    shown = ", ".join(numbers[:3])
    return f"{shown} and {len(numbers) - 3} more" if len(numbers) > 3 else shown
