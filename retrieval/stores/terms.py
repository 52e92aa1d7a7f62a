"""Text analysis of the lexical leg: the same for chunks and for queries.

- Case, width and compatibility forms are folded (NFKC, casefold); typographic hyphens and
  apostrophes become the plain ones; characters that do not show (soft hyphen, joiners, direction
  marks) go.
- A code such as `OBS-12/3b` is one term, and so is each of its parts. A number keeps its
  separators: `3.5` is one term, `1,250.50` also counts as `1250.50`. Digits are never stemmed.
- Words of ASCII letters are stemmed with Snowball's English algorithm (Porter 2001).
- Chinese, Japanese and Korean, and the scripts written without spaces (Thai, Lao, Khmer, Burmese),
  give character bigrams; a run of one character is a term by itself.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

# PostgreSQL refuses an index entry over 2,704 bytes; four bytes a character keep well under it.
MAX_TERM_CHARACTERS = 64

_ASTRAL_END = 0x20000
_MARKS = "".join(
    chr(point) for point in range(0x300, _ASTRAL_END) if unicodedata.category(chr(point))[0] == "M"
)
_WORD = rf"\w{_MARKS}"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
_COMPOUND_OF = r"{0}+(?:(?:[-/.:@&']|(?<=\d),(?=\d)){0}+)*"
_COMPOUND = re.compile(_COMPOUND_OF.format(f"[{_WORD}]"))
_ASCII_COMPOUND = re.compile(_COMPOUND_OF.format(r"\w"), re.ASCII)  # the same, three times as fast
_PART = re.compile(
    rf"(?<![{_WORD}.,])\d+[.,]\d+(?![{_WORD}.,])"  # a decimal is not cut at its separator
    rf"|(?:(?!_)[{_WORD}])+"
)
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_RUN = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_UNSPACED_START = re.compile(rf"[{_UNSPACED}]")
_FOLDS = str.maketrans(
    {"\u2010": "-", "\u2011": "-", "\u2212": "-", "\u2019": "'", "\u02bc": "'"}
    | dict.fromkeys("\u00ad\u200c\u200d\u200e\u200f\u2060\ufeff", "")
    | dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", "")
)


def terms(text: str) -> list[str]:
    """The terms of `text` in order, with repeats: how often a term occurs is its frequency."""
    compounds = (
        _ASCII_COMPOUND.findall(text.lower()) if text.isascii() else _COMPOUND.findall(_fold(text))
    )
    return [
        term
        for whole in compounds
        for term in (_kept_terms if whole.isascii() else _compound_terms)(whole)
    ]


def _fold(text: str) -> str:
    # Casefolding can undo NFKC ("ŉ" becomes two characters), hence the second pass.
    plain = unicodedata.normalize("NFKC", text.translate(_FOLDS)).casefold()
    return unicodedata.normalize("NFKC", plain).translate(_FOLDS)


def _compound_terms(whole: str) -> list[str]:
    whole = whole.removesuffix("'s")
    if _GROUPED_NUMBER.fullmatch(whole):
        found = [whole, whole.replace(",", "")]
    else:
        parts: list[str] = _PART.findall(whole)
        kept = [whole] if parts and parts != [whole] else []
        found = kept + [term for part in parts for term in _part_terms(part)]
    return [term[:MAX_TERM_CHARACTERS] for term in found]


# Words come back; the long runs of scripts without spaces do not.
_kept_terms = lru_cache(maxsize=65536)(_compound_terms)


def _part_terms(part: str) -> list[str]:
    if part.isascii():
        return [_stem(part) if part.isalpha() else part]
    return [term for run in _RUN.findall(part) for term in _run_terms(run)]


def _run_terms(run: str) -> list[str]:
    if not _UNSPACED_START.match(run):
        return [_stem(run) if run.isascii() and run.isalpha() else run]
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def _stem(word: str) -> str:
    # A stemmer holds the word it works on, so threads cannot share one; making one takes 1 us.
    stemmed: str = snowballstemmer.stemmer("english").stemWord(word)
    return stemmed
