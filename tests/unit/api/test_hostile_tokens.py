"""Cursors and embed tokens: our own are decoded, and any other text raises the module's error."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import ApiError
from api.http.paging import CursorCipher, Delivered, Position
from api.reports.tokens import LIFE, SESSION, TokenSigner

CIPHER, OTHER_CIPHER = CursorCipher(b"k" * 32), CursorCipher(b"o" * 32)
SIGNER = TokenSigner(b"s" * 32)
NOW = datetime(2099, 5, 1, tzinfo=UTC)

KEYS = st.lists(st.one_of(st.text(max_size=60), st.integers(-(2**63), 2**63 - 1)), max_size=5).map(tuple)
DELIVERED = st.none() | st.builds(Delivered, KEYS, st.integers(0, 2**128 - 1))
POSITIONS = st.builds(Position, st.integers(0, 2**63 - 1), KEYS, DELIVERED)
NEARLY = st.text("ABCabc019-_=+/ .é", max_size=400)


@given(POSITIONS, st.binary(max_size=60), st.text(max_size=20))
def test_a_cursor_is_decrypted_to_its_position(position: Position, scope: bytes, epoch: str) -> None:
    cursor = CIPHER.encrypt(scope, epoch, position)
    assert CIPHER.decrypt(scope, epoch, cursor) == position
    for cipher, other_scope in ((OTHER_CIPHER, scope), (CIPHER, scope + b"x")):
        with pytest.raises(ApiError) as caught:
            cipher.decrypt(other_scope, epoch, cursor)
        assert caught.value.code == "bad-cursor"
    with pytest.raises(ApiError) as caught:
        CIPHER.decrypt(scope, epoch + "x", cursor)
    assert caught.value.code == "cursor-expired"


@given(POSITIONS, st.data())
def test_a_changed_cursor_is_refused(position: Position, data: st.DataObject) -> None:
    cursor = CIPHER.encrypt(b"scope", "epoch", position)
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ApiError) as caught:
        CIPHER.decrypt(b"scope", "epoch", base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("="))
    assert caught.value.code == "bad-cursor"


@given(st.text(max_size=100) | NEARLY)
def test_any_other_text_is_refused_as_cursor(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        CIPHER.decrypt(b"scope", "epoch", text)
    assert caught.value.code == "bad-cursor"


@given(st.text(max_size=40), st.dictionaries(st.text(max_size=10), st.text(max_size=40), max_size=3))
def test_embed_token_is_decoded_to_its_claims(tenant: str, params: dict[str, str]) -> None:
    token, claims = SIGNER.open_session(tenant, "cap-table", params, "emb_1", "key_1", NOW)
    assert SIGNER.read(token) == claims
    assert (claims.tenant, claims.params) == (tenant, params)
    assert claims.exp == int((NOW + LIFE).timestamp()) < claims.sxp == int((NOW + SESSION).timestamp())
    with pytest.raises(ApiError) as caught:
        TokenSigner(b"t" * 32).read(token)
    assert caught.value.code == "token-invalid"
    with pytest.raises(ApiError) as caught:
        SIGNER.go_on(claims, NOW + SESSION + timedelta(seconds=1))
    assert caught.value.code == "token-expired"


@given(st.text(max_size=100) | NEARLY | st.binary(max_size=200).map(lambda raw: f"e30.{raw.hex()}.x"), st.data())
def test_any_other_text_is_refused_as_embed_token(text: str, data: st.DataObject) -> None:
    token, _ = SIGNER.open_session("ten_1", "index", {}, "emb_1", "key_1", NOW)
    # The last character of a signature has unused bits.
    place = data.draw(st.integers(0, len(token) - 2))
    changed = token[:place] + data.draw(st.sampled_from("ABz09-_.")) + token[place + 1 :]
    for wrong in {text, token[:place], changed} - {token}:
        with pytest.raises(ApiError) as caught:
            SIGNER.read(wrong)
        assert (caught.value.status, caught.value.code) == (401, "token-invalid")
