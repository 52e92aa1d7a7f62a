"""Values of spreadsheet cells as people see them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import pytest

from ingest.readers.cells import shown


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (12, "General", "12"),
        (0.1 + 0.2, "General", "0.3"),
        (-3.5, "General", "-3.5"),
        (1e300, "General", "1e+300"),
        (12553, "#,##0", "12,553"),
        (12553.4, "#,##0 ;\\(#,##0\\)", "12,553"),
        (3.14159, "0.00", "3.14"),
        (3.0, "0.0#", "3.0"),
        (2.5, "#.##", "2.5"),
        (0.257, "0%", "26%"),
        (0.257, "0.0%", "25.7%"),
        (12.5, '"$"#,##0.00', "$12.50"),
        (12.5, "$0.00", "$12.50"),
        (12.5, "#,##0.00\\ [$€-407]", "12.50 €"),
        (7, "0.00E+00", "7"),
        (0.5, "# ?/?", "0.5"),
        (1, "\\1\\.0#", "1"),
        (5, "@", "5"),
        (True, "General", "TRUE"),
        (False, "0.00", "FALSE"),
        (datetime(2024, 3, 1), "yyyy-mm-dd", "2024-03-01"),
        (datetime(2024, 3, 1, 9, 30), "General", "2024-03-01 09:30:00"),
        (date(2024, 3, 1), "General", "2024-03-01"),
        (time(9, 30), "h:mm", "09:30:00"),
        (timedelta(hours=30), "[h]:mm", "1 day, 6:00:00"),
        ("text", "0.00", "text"),
        ("#N/A", "General", "#N/A"),
    ],
)
def test_value_is_shown_as_its_format_says(value: object, number_format: str, text: str) -> None:
    assert shown(value, number_format) == text


@pytest.mark.parametrize("number_format", ["", "[", '"', "\\", "0." + "0" * 500, ";;;", "#" * 500])
def test_format_without_sense_gives_the_number_all_the_same(number_format: str) -> None:
    assert shown(7, number_format).startswith("7")
