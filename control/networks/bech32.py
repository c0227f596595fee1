"""Segwit addresses: witness programs in bech32 (version 0) and bech32m (later versions).

The library `embit` has such code too. But its module loads a native library when it is imported, and it encodes more
slowly, which matters for every output of every block.

Sources: https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki and bip-0350.mediawiki
"""

from functools import reduce
from operator import xor

CHARACTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

_VALUES = {character: value for value, character in enumerate(CHARACTERS)}
_LONGEST = 90
_LAST_VERSION = 16
_CHECKSUM_LENGTH = 6
_BECH32, _BECH32M = 1, 0x2BC830A3
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_FEEDBACK = tuple(reduce(xor, (term for bit, term in enumerate(_GENERATOR) if top >> bit & 1), 0) for top in range(32))


def encode(prefix: str, version: int, program: bytes) -> str:
    """Return the address of a witness program.

    Args:
        prefix: the network's human-readable part, in lower case.
        version: witness version, 0 to 16.
        program: 2 to 40 bytes; 20 or 32 bytes for version 0.
    """
    bits = 8 * len(program)
    padding = -bits % 5
    number = int.from_bytes(program, "big") << padding
    data = [version, *(number >> shift & 31 for shift in range(bits + padding - 5, -1, -5))]
    rest = _remainder(prefix, [*data, *[0] * _CHECKSUM_LENGTH]) ^ _constant(version)
    data += (rest >> shift & 31 for shift in range(25, -1, -5))
    return f"{prefix}1{''.join([CHARACTERS[value] for value in data])}"


def decode(address: str) -> tuple[str, int, bytes]:
    """Return prefix (in lower case), witness version and witness program of an address in one case.

    Raises:
        ValueError: the text is no such address; says why.
    """
    if len(address) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")
    if address not in (address.lower(), address.upper()):
        raise ValueError("mixes upper and lower case")
    prefix, separator, rest = address.lower().rpartition("1")
    if not separator or not prefix or any(not "!" <= character <= "~" for character in prefix):
        raise ValueError("has no prefix of printable characters before a 1")
    unknown = sorted(set(rest) - _VALUES.keys())
    if unknown:
        raise ValueError(f"contains characters that are not allowed after its prefix: {''.join(unknown)!a}")
    values = [_VALUES[character] for character in rest]
    if len(values) <= _CHECKSUM_LENGTH:
        raise ValueError("is too short")
    version, payload = values[0], values[1:-_CHECKSUM_LENGTH]
    remainder = _remainder(prefix, values)
    if remainder not in (_BECH32, _BECH32M):
        raise ValueError("has a wrong checksum, so a character may be mistyped")
    if version > _LAST_VERSION:
        raise ValueError(f"has witness version {version}; the last one is {_LAST_VERSION}")
    if remainder != _constant(version):
        needed = "bech32" if version == 0 else "bech32m"
        raise ValueError(f"has the checksum of another encoding; witness version {version} needs {needed}")
    program = _to_bytes(payload)
    if not 2 <= len(program) <= 40 or (version == 0 and len(program) not in (20, 32)):
        raise ValueError(f"has {len(program)} bytes of data, which witness version {version} does not allow")
    return prefix, version, program


def _to_bytes(values: list[int]) -> bytes:
    number = reduce(lambda left, value: left << 5 | value, values, 0)
    padding = 5 * len(values) % 8
    if padding > 4 or number & (1 << padding) - 1:
        raise ValueError("has wrong padding at the end of its data")
    return (number >> padding).to_bytes(5 * len(values) // 8, "big")


def _constant(version: int) -> int:
    return _BECH32 if version == 0 else _BECH32M


def _remainder(prefix: str, values: list[int]) -> int:
    """Return the remainder of the checksum's polynomial; it identifies the encoding if the checksum is right."""
    codes = prefix.encode("ascii")
    remainder = 1
    for value in (*(code >> 5 for code in codes), 0, *(code & 31 for code in codes), *values):
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value ^ _FEEDBACK[remainder >> 25]
    return remainder
