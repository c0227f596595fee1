"""Private keys in a text: they are refused before any other check, and no error repeats them.

Sources: https://en.bitcoin.it/wiki/Wallet_import_format, BIP 32 (serialization), BIP 39 (seed words) and
https://github.com/satoshilabs/slips/blob/master/slip-0132.md
"""

import re

from embit import base58

from control.networks.addresses import InvalidAddress

_WORD = re.compile("[0-9A-Za-z]+")
_BASE58 = re.compile(f"[{base58.B58_DIGITS}]{{26,120}}")
_WIF_LENGTHS = (51, 52)
# At least 12 words, also as a numbered list. Letters beside digits, as in a key, are no words.
_SEED_WORDS = re.compile(r"(?:\b[^\W\d_]++\b[\s\d.,;:)-]++){11}[^\W\d_]++\b")
_EXTENDED_START = re.compile("[a-zA-Z]prv|[a-zA-Z]tpv")  # xprv, Zprv, Ltpv, ttpv
_EXTENDED_BYTES, _KEY_PLACE = 78, 45


def refuse_private_keys(text: str) -> None:
    """Check that a text contains no private key: WIF, extended or as seed words, of any network, even if mistyped.

    Raises:
        InvalidAddress: it contains one; the message does not repeat it.
    """
    if _SEED_WORDS.search(text):
        raise InvalidAddress(
            "the text has 12 or more words, as the seed words of a private key do. It was not stored. Give an address "
            "or a public key, and treat seed words as exposed"
        )
    if any(map(_is_private_key, _WORD.findall(text))):
        raise InvalidAddress(
            "the text contains a private key, which is not needed and was not stored; give the public key, and treat "
            "the private one as exposed"
        )


def base58_payload(word: str) -> bytes | None:
    """Return the bytes of a base58 word without its checksum; None if it has another form or a wrong checksum."""
    if _BASE58.fullmatch(word) is None:
        return None
    try:
        return bytes(base58.decode_check(word))
    except ValueError:
        return None  # the caller names the fault


def _is_private_key(word: str) -> bool:
    if _BASE58.fullmatch(word) is None:
        return False
    # No public key or address is a base58 word of these lengths.
    if len(word) in _WIF_LENGTHS or (len(word) > 100 and _EXTENDED_START.match(word)):
        return True
    payload = base58_payload(word)
    if payload is None:
        return False
    return len(payload) in (33, 34) or (len(payload) == _EXTENDED_BYTES and payload[_KEY_PLACE] == 0)
