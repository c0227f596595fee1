"""Ids, and the checks of texts."""

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from control.clock import whole_second
from control.errors import Invalid
from control.fields import check_filter, check_optional_text, check_text
from control.ids import is_id, new_id


def test_ids_sort_by_creation_and_are_unique_among_threads() -> None:
    drawn: list[list[str]] = [[] for _ in range(4)]

    def draw(into: list[str]) -> None:
        into.extend(new_id("tok_") for _ in range(2000))

    threads = [threading.Thread(target=draw, args=(into,)) for into in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for into in drawn:
        assert into == sorted(into)
    together = [text for into in drawn for text in into]
    assert len(set(together)) == 8000
    assert all(is_id("tok_", text) for text in together)


@pytest.mark.parametrize(
    "text", ["", "tok_", "wal_" + "0" * 26, "tok_" + "0" * 25, "tok_" + "u" * 26, "tok_" + "0" * 26 + "\n"]
)
def test_other_texts_are_refused_as_ids(text: str) -> None:
    assert not is_id("tok_", text)


@pytest.mark.parametrize("text", ["a", "é", "名前", "a b", "👩‍👩‍👧", "می‌خواهم", "x" * 10])
def test_good_texts_pass_unchanged(text: str) -> None:
    assert check_text("name", text, 10) == text
    assert check_optional_text("name", text, 10) == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("x" * 11, "too-long"),
        ("a\x00b", "control-character"),
        ("a\nb", "control-character"),
        ("a\x7fb", "control-character"),
        ("a\x9bb", "control-character"),
        ("a\u2028b", "control-character"),
        ("a\ud800b", "control-character"),
        *((f"a{chr(code)}b", "control-character") for code in (0x200B, 0x202E, 0x2066, 0x2069, 0xFEFF, 0xAD)),
        (" a", "surrounding-space"),
        ("a\u00a0", "surrounding-space"),
    ],
)
def test_bad_texts_are_refused_naming_field_and_kind(text: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_optional_text("externalId", text, 10)
    assert (caught.value.field, caught.value.code) == ("externalId", code)
    assert "externalId" in caught.value.detail
    assert caught.value.detail.isprintable()


def test_optional_text_may_be_null_and_multiline_text_has_line_breaks() -> None:
    assert check_optional_text("name", None, 10) is None
    assert check_text("description", "a\n\tb", 10, is_multiline=True) == "a\n\tb"
    with pytest.raises(Invalid):
        check_text("description", "a\x00b", 10, is_multiline=True)
    with pytest.raises(Invalid, match="description has the control or invisible character U\\+202A at position 3"):
        check_text("description", "a\n\u202ab", 10, is_multiline=True)


def test_a_filter_may_be_blank_but_not_empty() -> None:
    assert check_filter("q", " ") == " "
    assert check_filter("symbol", "stored by an older release\u202e") == "stored by an older release\u202e"
    assert check_filter("q", "x" * 200) == "x" * 200
    for text in ("", "\x00", "x" * 201, "\ud800"):
        with pytest.raises(Invalid):
            check_filter("q", text)


def test_an_instant_is_cut_to_its_second_in_utc() -> None:
    eastern = datetime(2024, 1, 1, 2, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert whole_second(eastern) == datetime(2024, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="no time zone"):
        whole_second(eastern.replace(tzinfo=None))
