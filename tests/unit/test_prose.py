"""The check of prose finds each kind of hard sentence, and accepts plain sentences, questions and code."""

import pytest

from tests.prose import faults, sentences, texts


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        (" ".join(["word"] * 29) + ".", "29 words"),
        ("Whether the range is collected.", "begins with a clause"),
        ("The asset continues what is open.", "clause in place of a noun"),
        ("The row belongs to nobody.", "a person in place of a thing"),
        ("The marts are built anew.", "does not use"),
    ],
)
def test_each_kind_of_hard_sentence_is_found(sentence: str, reason: str) -> None:
    assert [reason in fault for fault in faults(sentence)] == [True]


@pytest.mark.parametrize(
    "sentence",
    [
        " ".join(["word"] * 28) + ".",
        "True if the range is collected.",
        "What is a covered range?",
        "The page says what happens next.",
    ],
)
def test_plain_sentences_and_questions_are_accepted(sentence: str) -> None:
    assert list(faults(sentence)) == []


def test_sentences_have_their_line_and_no_code() -> None:
    paragraph = "First one. The\nsecond `a b c`."
    table = "| head | [link](x.md) |\n| --- | --- |\n| a | b |"
    page = f"# Title\n\n{paragraph}\n\n```sh\nskipped\n```\n\n{table}\n"
    assert list(sentences(page)) == [
        (1, "Title"),
        (3, "First one."),
        (3, "The second code."),
        (10, "head"),
        (10, "link"),
        (12, "a"),
        (12, "b"),
    ]


def test_every_kind_of_text_is_read() -> None:
    places = {place for place, _ in texts()}
    assert {
        "README.md",
        "CHANGELOG.md",
        "docs/reference/numbers.md",
        "dbt_project/models/marts/_marts__models.yml/models/tokens/columns/symbol",
        "OpenAPI/components/schemas/CapTable/properties/currency",
        "ledgermart doctor",
        "ledgermart export --format",
    } <= places
    assert "docs/design.md" not in places
