"""Addresses of networks of unspent outputs (Bitcoin, Litecoin), and their own definitions.

An address stands for an output script. Base58 addresses contain the hash of a key or of a script, segwit addresses a
witness program.

Sources: https://en.bitcoin.it/wiki/Base58Check_encoding, https://en.bitcoin.it/wiki/Script, BIP 173 and BIP 350
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated

from embit import base58

from control.errors import shortened
from control.networks import bech32
from control.networks.addresses import InvalidAddress
from control.networks.data_sets import FormShape
from control.networks.private_keys import refuse_private_keys
from control.networks.tables import FamilyDefinition, NetworkTable
from control.toml_files import one_of, within

_BASE58 = re.compile(f"[{base58.B58_DIGITS}]{{26,35}}")
_DATA = "ac-hj-np-z02-9"  # the characters of bech32
# A prefix, then the witness version, 2 to 40 bytes of data and the checksum.
_SEGWIT = re.compile(rf"[a-z0-9]{{1,78}}1[{_DATA}]{{11,71}}|[A-Z0-9]{{1,78}}1[{_DATA.upper()}]{{11,71}}")
_MWEB = re.compile("[a-z]*mweb1[a-z0-9]+", re.IGNORECASE)
_BLOCK_HASH = re.compile("[0-9a-f]{64}")
_PREFIX = re.compile("[a-z][a-z0-9]{0,19}")
_VERSION_BYTES = re.compile("[0-9a-f]{8}")
_XPUB = "0488b21e"

_MWEB_VERSIONS = (8, 9)
"""Witness versions of the scripts that link blocks to Litecoin's hidden outputs.

Source: https://github.com/litecoin-project/lips/blob/master/lip-0002.mediawiki
"""

_KEY_HASH_START, _KEY_HASH_END = bytes.fromhex("76a914"), bytes.fromhex("88ac")
_SCRIPT_HASH_START, _SCRIPT_HASH_END = bytes.fromhex("a914"), bytes.fromhex("87")
_OP_0, _OP_1, _OP_16 = 0x00, 0x51, 0x60

_HIDDEN = "MWEB addresses are not supported because their outputs are hidden; give an address that is not MWEB"


class ProofOfWork(StrEnum):
    """The hash of a header that must be at most the target of the header: twice SHA-256, scrypt, or no such rule."""

    SHA256D = "sha256d"
    SCRYPT = "scrypt"
    NONE = "none"


class UtxoAddressCodec:
    """Stores base58 addresses unchanged and segwit addresses in lower case, with the prefixes of any network."""

    pattern = f"{_BASE58.pattern}|{_SEGWIT.pattern}"
    address_format = "base58 or bech32 with the prefix of the network; in base58, upper and lower case differ"
    nobody: str | None = None
    burns: frozenset[str] = frozenset()
    has_tokens = False
    data_set_forms: Mapping[str, FormShape] = MappingProxyType({})

    def parse(self, text: str) -> str:
        """Return the canonical form of an address, whichever network it belongs to.

        Raises:
            InvalidAddress: wrong form, length or checksum, an MWEB address, or a private key.
        """
        name = shortened(ascii(text))
        is_base58 = _BASE58.fullmatch(text) is not None
        if is_base58 and _from_base58(text) is not None:
            return text
        # The errors below repeat the text.
        refuse_private_keys(text)
        if _MWEB.fullmatch(text):
            raise InvalidAddress(f"{name}: {_HIDDEN}")
        if _SEGWIT.fullmatch(text) is None and is_base58:
            raise InvalidAddress(f"{name} has a wrong checksum or length, so a character may be mistyped; check it")
        if not (text.isascii() and text.isalnum()) or "1" not in text:
            raise InvalidAddress(f"{name} is not an address in base58 or bech32; write it as your wallet shows it")
        try:
            bech32.decode(text)
        except ValueError as error:
            raise InvalidAddress(f"{name} {error}; write the address as your wallet shows it") from error
        return text.lower()

    def present(self, stored: str) -> str:
        """Return a stored address, which is shown as it is."""
        return stored


@dataclass(frozen=True, slots=True)
class UtxoDefinition(FamilyDefinition):
    """Fields of the definition of a network of unspent outputs.

    Args:
        genesis_hash: hash of block 0 as nodes show it: 64 lower-case hexadecimal digits.
        pubkey_hash_prefix: first byte of base58 addresses with the hash of a key.
        script_hash_prefixes: first bytes of base58 addresses with the hash of a script; the first one is canonical.
        segwit_prefix: prefix of segwit addresses, without the 1 behind it.
        mweb_prefix: the same of MWEB addresses; None if the network has no MWEB.
        extended_key_versions: version bytes of extended public keys; the first ones are canonical.
        proof_of_work: of its blocks.
    """

    genesis_hash: str
    pubkey_hash_prefix: int
    script_hash_prefixes: tuple[int, ...]
    segwit_prefix: str
    mweb_prefix: str | None
    extended_key_versions: tuple[bytes, ...] = (bytes.fromhex(_XPUB),)
    proof_of_work: ProofOfWork = ProofOfWork.NONE

    @property
    def identity(self) -> str:
        """Return the hash of block 0."""
        return self.genesis_hash

    @property
    def chain_id(self) -> int | None:
        """Return None: these networks have no number."""
        return None

    def address(self, stored: str) -> str:
        """Return the network's canonical form of an address that the codec returned.

        Raises:
            InvalidAddress: another network's address, an MWEB address, or a witness version that MWEB reserves.
        """
        address = self.address_of(self.script(stored))
        assert address is not None, "every script of an address has an address"
        return address

    def script(self, address: str) -> bytes:
        """Return the output script of an address of this network, in any form that the codec returns.

        Raises:
            InvalidAddress: as `address`.
        """
        payload = _from_base58(address)
        if payload is not None:
            prefix, hashed = payload[0], payload[1:]
            if prefix == self.pubkey_hash_prefix:
                return _KEY_HASH_START + hashed + _KEY_HASH_END
            if prefix in self.script_hash_prefixes:
                return _SCRIPT_HASH_START + hashed + _SCRIPT_HASH_END
            raise self._foreign(address)
        try:
            prefix_text, version, program = bech32.decode(address)
        except ValueError as error:
            raise InvalidAddress(f"{shortened(ascii(address))} {error}") from error
        if prefix_text == self.mweb_prefix:
            raise InvalidAddress(f"{address}: {_HIDDEN}")
        if prefix_text != self.segwit_prefix:
            raise self._foreign(address)
        if self._is_reserved(version):
            raise InvalidAddress(
                f"{address} has witness version {version}, which this network reserves for MWEB; give another address"
            )
        return bytes((_OP_1 - 1 + version if version else _OP_0, len(program))) + program

    def address_of(self, script: bytes) -> str | None:
        """Return the canonical address of an output script.

        None: the script has no address, such as a bare key or multisig, data (OP_RETURN), MWEB, or an unknown form.
        """
        length = len(script)
        if length == 25 and script.startswith(_KEY_HASH_START) and script.endswith(_KEY_HASH_END):
            return _to_base58(self.pubkey_hash_prefix, script[3:23])
        if length == 23 and script.startswith(_SCRIPT_HASH_START) and script.endswith(_SCRIPT_HASH_END):
            return _to_base58(self.script_hash_prefixes[0], script[2:22])
        if not 4 <= length <= 42 or script[1] != length - 2:
            return None
        if script[0] == _OP_0:
            return _to_segwit(self.segwit_prefix, 0, script[2:]) if length in (22, 34) else None
        if not _OP_1 <= script[0] <= _OP_16:
            return None
        version = script[0] - _OP_1 + 1
        return None if self._is_reserved(version) else _to_segwit(self.segwit_prefix, version, script[2:])

    def _is_reserved(self, version: int) -> bool:
        return self.mweb_prefix is not None and version in _MWEB_VERSIONS

    def _foreign(self, address: str) -> InvalidAddress:
        prefixes = (self.pubkey_hash_prefix, *self.script_hash_prefixes)
        letters = [letter for prefix in prefixes for letter in _first(prefix)]
        return InvalidAddress(
            f"{address} belongs to another network; addresses of this network begin with "
            f"{', '.join(dict.fromkeys(letters))} or {self.segwit_prefix}1"
        )


class UtxoTable(NetworkTable, frozen=True, kw_only=True, tag="utxo"):
    """A network of unspent outputs in the file of definitions."""

    genesis_hash: str
    pubkey_hash_prefix: Annotated[int, within(0, 255)]
    script_hash_prefixes: list[Annotated[int, within(0, 255)]]
    segwit_prefix: str
    proof_of_work: Annotated[str, one_of(tuple(ProofOfWork))]
    mweb_prefix: str | None = None
    extended_key_versions: tuple[str, ...] = (_XPUB,)

    def own(self) -> UtxoDefinition:
        if _BLOCK_HASH.fullmatch(self.genesis_hash) is None:
            raise ValueError("field 'genesis_hash': is not a block hash; write 64 lower-case hexadecimal digits")
        prefixes = self.script_hash_prefixes
        if not prefixes:
            raise ValueError("field 'script_hash_prefixes': is empty; write the canonical prefix first")
        if len({self.pubkey_hash_prefix, *prefixes}) != 1 + len(prefixes):
            raise ValueError(
                "field 'script_hash_prefixes': repeats a prefix of its own or 'pubkey_hash_prefix'; write each one once"
            )
        for name, prefix in (("segwit_prefix", self.segwit_prefix), ("mweb_prefix", self.mweb_prefix)):
            if prefix is not None and _PREFIX.fullmatch(prefix) is None:
                raise ValueError(
                    f"field {name!r}: is not a prefix; write up to 20 lower-case letters and digits, a letter first"
                )
        if self.mweb_prefix == self.segwit_prefix:
            raise ValueError("field 'mweb_prefix': is the same as 'segwit_prefix'; correct one of them")
        versions = self.extended_key_versions
        if not versions or not all(map(_VERSION_BYTES.fullmatch, versions)):
            raise ValueError(
                "field 'extended_key_versions': is not a list of version bytes; write each one as 8 lower-case "
                "hexadecimal digits"
            )
        return UtxoDefinition(
            self.genesis_hash,
            self.pubkey_hash_prefix,
            tuple(prefixes),
            self.segwit_prefix,
            self.mweb_prefix,
            tuple(map(bytes.fromhex, versions)),
            ProofOfWork(self.proof_of_work),
        )


def _from_base58(text: str) -> bytes | None:
    """Return prefix and hash (21 bytes) of a base58 address; None if it has another form or a wrong checksum."""
    if _BASE58.fullmatch(text) is None:
        return None
    try:
        payload = bytes(base58.decode_check(text))
    except ValueError:
        return None  # the caller names the fault
    return payload if len(payload) == 21 else None


# A holder's address appears in many blocks, and encoding it takes 5 us (base58) or 16 us (segwit).
@lru_cache(maxsize=131_072)
def _to_base58(prefix: int, hashed: bytes) -> str:
    return str(base58.encode_check(bytes((prefix,)) + hashed))


@lru_cache(maxsize=131_072)
def _to_segwit(prefix: str, version: int, program: bytes) -> str:
    return bech32.encode(prefix, version, program)


def _first(prefix: int) -> str:
    """Return the characters with which base58 addresses of a prefix may begin."""
    lowest, highest = (base58.B58_DIGITS.index(_to_base58(prefix, 20 * end)[0]) for end in (b"\0", b"\xff"))
    return str(base58.B58_DIGITS[lowest : highest + 1])
