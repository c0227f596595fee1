"""The end of an embed session."""

from datetime import UTC, datetime, timedelta

import pytest

from api.errors import ApiError
from api.reports.tokens import SESSION, TokenSigner


def test_a_session_renews_its_token_until_its_last_microsecond_and_not_at_its_end() -> None:
    signer, opened = TokenSigner(b"s" * 32), datetime(2099, 5, 1, tzinfo=UTC)
    _, claims = signer.open_session("ten_1", "index", {}, "emb_1", "key_1", opened)
    _, renewed = signer.go_on(claims, opened + SESSION - timedelta(microseconds=1))
    assert renewed.exp == renewed.sxp == int((opened + SESSION).timestamp())
    with pytest.raises(ApiError) as caught:
        signer.go_on(claims, opened + SESSION)
    assert (caught.value.status, caught.value.code) == (401, "token-expired")
