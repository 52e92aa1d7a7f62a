"""The value of a spreadsheet cell as people see it, by its number format (ECMA-376, 18.8.31)."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

_LITERALS = re.compile(r'"[^"]*"|\\.|_.|\*.')
_CURRENCY = re.compile(r"\[\$([^\]-]*)[^\]]*\]|([$€£¥])")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_DIGITS = re.compile(r"[#0?,]*[#0?](?:\.([#0?]*))?(?!.*[Ee/])")
_CURRENCY_LITERAL = re.compile(r'\\([$€£¥])|"([$€£¥])"')
_MAX_DECIMALS = 15


def shown(value: object, number_format: str) -> str:
    """Text of a cell value: ISO dates, percentages, decimals and currency as formatted."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        is_midnight = value.time() == time(0)
        return value.date().isoformat() if is_midnight else value.isoformat(" ", "seconds")
    if isinstance(value, time):
        return value.isoformat("seconds")
    if isinstance(value, date | timedelta):
        return str(value)
    if isinstance(value, int | float):
        return _number(value, number_format)
    return str(value)


def _number(value: float, number_format: str) -> str:
    section = number_format.split(";")[0]
    section = _CURRENCY_LITERAL.sub(lambda match: match[1] or match[2], section)
    section = _LITERALS.sub("", section)
    currency = _CURRENCY.search(section)
    bare = _BRACKETS.sub("", section)
    digits = _DIGITS.search(bare)
    if digits is None:
        return _plain(value)
    is_percent = "%" in bare
    number = value * 100 if is_percent else value
    places = digits[1]
    has_places = places is not None or is_percent or "0" in digits[0] or "#" in digits[0]
    text = _fixed(number, places or "", "," in digits[0]) if has_places else _plain(number)
    symbol = (currency[1] or currency[2] or "") if currency else ""
    if currency and symbol:
        before = currency.start() < section.find(digits[0])
        text = f"{symbol}{text}" if before else f"{text} {symbol}"
    return text + ("%" if is_percent else "")


def _fixed(number: float, places: str, has_separators: bool) -> str:
    """With as many decimals as the format has, those of `#` only where they are not zero."""
    decimals = min(len(places), _MAX_DECIMALS)
    text = f"{number:,.{decimals}f}" if has_separators else f"{number:.{decimals}f}"
    optional = len(places) - len(places.rstrip("#?"))
    for _ in range(optional):
        text = text.removesuffix("0")
    return text.removesuffix(".") if decimals else text


def _plain(value: float) -> str:
    """Without the noise of binary fractions: 15 digits, as spreadsheets keep."""
    return str(value) if isinstance(value, int) else f"{value:.15g}"
