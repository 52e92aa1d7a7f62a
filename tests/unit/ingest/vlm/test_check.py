"""Answers that are believed, and all the kinds that are not."""

from __future__ import annotations

import pytest

from ingest.vlm.check import CheckThresholds, Fault, Witness, find_fault, numbers, witness
from tests.unit.ingest.vlm.pages import ANSWER, TEXTS, lines_of

LIMITS = CheckThresholds()
SEEN = witness(lines_of(), LIMITS)


def fault_of(
    answer: str, seen: Witness = SEEN, *, finish_reason: str = "stop", blank: bool = False
) -> Fault | None:
    return find_fault(answer, finish_reason, seen, blank=blank, thresholds=LIMITS)


def reason_of(answer: str, seen: Witness = SEEN, *, finish_reason: str = "stop") -> str:
    fault = fault_of(answer, seen, finish_reason=finish_reason)
    assert fault is not None
    return fault.reason


def test_a_faithful_answer_is_accepted() -> None:
    """Behaviour 8."""
    assert fault_of(ANSWER) is None
    assert fault_of("\n".join(reversed(TEXTS))) is None, "order is not OCR's to judge"


def test_ocr_that_loses_spaces_and_hyphenates_confirms_all_the_same() -> None:
    """Behaviour 8."""
    glued = ["Harbourduesfor theyear 2024", "Vesselsover 40 metres pay 1,250.50 aday", "Pilot-"]
    glued += ["age from the outer buoy costs 318 and", "waste is col-"]
    glued += ["lected everymorning for 42.75"]
    assert fault_of(ANSWER, witness(lines_of(glued), LIMITS)) is None


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        ("1,250.50", "1,260.50", "has 1260.50 where the OCR was sure of 1250.50"),
        ("42.75", "4275", "has 4275 where the OCR was sure of 42.75"),
        ("318", "", "of the page's 5 numbers, 318 are not in the answer"),
        ("318", "813", "of the page's 5 numbers, 318 are not in the answer"),
    ],
)
def test_a_number_that_the_ocr_was_sure_of_must_be_there(
    right: str, wrong: str, reason: str
) -> None:
    """Behaviour 8."""
    assert reason in reason_of(ANSWER.replace(right, wrong))


def test_one_wrong_number_among_many_is_enough() -> None:
    """Behaviour 8."""
    rows = [f"berth {number} tonnes {number * 37 + 1000}" for number in range(10, 60)]
    seen, answer = witness(lines_of(rows), LIMITS), "\n\n".join(rows)
    assert fault_of(answer, seen) is None
    assert reason_of(answer.replace("2110", "2119"), seen) == (
        "the answer has 2119 where the OCR was sure of 2110"
    )
    assert fault_of(answer.replace("2110", ""), seen) is None, "one in a hundred may be left out"


def test_a_number_that_the_ocr_was_unsure_of_may_be_corrected() -> None:
    """Behaviour 8."""
    lines = [*lines_of(TEXTS[:3]), *lines_of(["waste is collected every morning for 4Z.15"], 0.9)]
    assert fault_of(ANSWER, witness(lines, LIMITS)) is None


def test_numbers_that_nobody_saw_are_not_believed() -> None:
    """Behaviour 8."""
    invented = ANSWER + "\n| 2021 | 77.10 |\n| 2022 | 78.20 |\n"
    assert (
        reason_of(invented) == "the OCR did not see 2021, 77.10, 2022 and 1 more, which the "
        "answer has"
    )


@pytest.mark.parametrize("written", ["1 250 000", "1,250,000", "1.250.000", "1'250'000", "1250000"])
@pytest.mark.parametrize("seen", ["1 250 000", "1,250,000", "1250000"])
def test_thousands_may_be_set_apart_in_any_way(written: str, seen: str) -> None:
    """Behaviour 8."""
    assert (
        fault_of(f"a toll of {written}", witness(lines_of([f"a toll of {seen}"]), LIMITS)) is None
    )


def test_cells_side_by_side_are_not_one_number() -> None:
    lines = lines_of(["pier 120 340"])
    assert fault_of("| pier | 120 | 340 |", witness(lines, LIMITS)) is None
    assert fault_of("| pier | 120 | 341 |", witness(lines, LIMITS)) is not None


def test_numbers_are_compared_with_their_decimals() -> None:
    assert numbers("1,234.50 and 12.5, 3.1416; 7 % of 0.125") == (
        ["1234.50", "12.5", "3.1416", "7", "0125"]
    )


def test_an_answer_without_most_of_the_words_is_not_the_page() -> None:
    """Behaviour 8."""
    kept = "2024 40 1,250.50 318 42.75 Harbour dues for the year"
    assert "of the words that the OCR was sure of" in reason_of(kept)
    assert (
        reason_of("") == "of the page's 5 numbers, 2024, 40, 1250.50 and 2 more are not in the "
        "answer"
    )


def test_words_that_nobody_saw_are_not_believed() -> None:
    """Behaviour 8."""
    tale = (
        " All warfare is deception, said the general to his officers, and whoever is first in the"
        " field and awaits the enemy will be fresh for the fight; whoever hastens arrives weary."
    )
    assert "of the answer's words" in reason_of(ANSWER + tale)


def test_where_the_ocr_read_little_the_model_may_write_more() -> None:
    """Behaviour 8."""
    scrawl = witness(lines_of(["Hrbr dvcs f t yr", "Vsls pay a dy"], 0.55), LIMITS)
    assert scrawl.illegible_share == 1
    mostly = witness(
        [*lines_of(TEXTS[:1]), *lines_of(["Vsls pay a dy frm t bay"] * 3, 0.6)], LIMITS
    )
    assert 0.5 < mostly.illegible_share < 0.8
    assert fault_of(ANSWER, mostly) is None
    assert fault_of(ANSWER, scrawl) is None
    assert witness([], LIMITS).illegible_share == 1
    assert fault_of(ANSWER, witness([], LIMITS)) is None


def test_text_on_a_blank_page_is_made_up() -> None:
    """Behaviour 8."""
    nothing = witness([], LIMITS)
    assert fault_of("", nothing, blank=True) is None
    fault = fault_of("All warfare is based on deception.", nothing, blank=True)
    assert fault == Fault("the answer has text, and the page is blank")


@pytest.mark.parametrize(
    "loop",
    [
        "1 teaspoon onion\n" * 12,
        "the buoy and the pier and " * 8,
        "\n".join(f"| pier | {row} | open |\n| pier | | open |" for row in range(8)),
    ],
)
def test_a_loop_is_told_from_a_page(loop: str) -> None:
    """Behaviour 8."""
    fault = fault_of(f"{ANSWER}\n{loop}", finish_reason="length")
    assert fault is not None
    assert fault.reason.startswith("the answer repeats")
    assert not fault.final, "at another temperature it may not loop"


def test_an_answer_longer_than_any_page_is_none() -> None:
    """Behaviour 8."""
    endless = " ".join(f"word{number}" for number in range(20_000))
    assert reason_of(endless) == f"the answer has {len(endless):,} characters"


def test_a_page_written_twice_is_not_the_page() -> None:
    """Behaviour 8."""
    assert reason_of(ANSWER + ANSWER) == "the answer has 254 letters where the OCR saw 127"


def test_a_page_that_repeats_itself_may_be_repeated() -> None:
    """Behaviour 8."""
    rows = ["not applicable 0.00"] * 12
    assert fault_of("\n".join(rows), witness(lines_of(rows), LIMITS)) is None
    assert fault_of("\n".join(rows * 3), witness(lines_of(rows), LIMITS)) is not None


@pytest.mark.parametrize(
    "refusal",
    [
        "I'm sorry, but I can't assist with that.",
        "I cannot transcribe this image.",
        "I’m unable to read the text in this image.",
        "The image is too blurry to be transcribed.",
        "As an AI, I do not see images.",
    ],
)
def test_a_refusal_is_not_a_page(refusal: str) -> None:
    """Behaviour 8."""
    assert reason_of(refusal, witness([], LIMITS)).startswith("the model refused")


def test_a_letter_that_begins_like_a_refusal_is_a_page() -> None:
    letter = "I cannot come to the harbour this year."
    assert fault_of(letter, witness(lines_of([letter]), LIMITS)) is None


@pytest.mark.parametrize("finish_reason", ["length", "content_filter"])
def test_half_an_answer_is_none_and_asking_again_is_of_no_use(finish_reason: str) -> None:
    """Behaviour 8."""
    fault = fault_of(ANSWER, finish_reason=finish_reason)
    assert fault is not None
    assert fault.final


def test_scripts_without_spaces_are_compared_by_pieces() -> None:
    """Behaviour 8."""
    said = "港口使用费按船舶长度计算每天收取并且每年更新一次"
    seen = witness(lines_of([said[:12], said[12:]]), LIMITS)
    assert fault_of(f"# {said}", seen) is None
    assert fault_of("# 兵者国之大事死生之地存亡之道不可不察也故经之以五事", seen) is not None


def test_a_text_layer_is_as_good_a_witness_as_sure_ocr() -> None:
    seen = witness(lines_of(confidence=None), LIMITS)
    assert seen == SEEN
