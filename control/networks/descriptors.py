"""Wallets of keys: output descriptors and extended public keys, and the output scripts that they give.

An extended public key alone stands for a descriptor, by its version bytes: `xpub` for `pkh`, `ypub` for `sh(wpkh)`,
`zpub` for `wpkh`. Its branches 0 (receiving) and 1 (change) have one script for each index.

The library `embit` has descriptors too, but accepts private keys and many more scripts, and repeats its input in
errors. Only its curve arithmetic, checksums and hashes are used here.

Sources: BIP 32 (derivation), BIP 380 to 383 and BIP 389 (descriptors), and
https://github.com/satoshilabs/slips/blob/master/slip-0132.md (version bytes)
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from embit import base58
from embit.descriptor.checksum import checksum
from embit.hashes import hash160
from embit.util import secp256k1

from control.networks.addresses import InvalidAddress
from control.networks.private_keys import base58_payload, refuse_private_keys
from control.networks.utxo import UtxoDefinition

LONGEST = 4_000
"""Most characters of a descriptor; 20 keys with origins and paths have fewer."""
GAP = 20
"""Unused indices after the highest used one that wallets watch. Source: BIP 44, address gap limit."""
SCAN_RANGE = 1_000
"""Indices of each branch that are scanned when a wallet is opened: 0 to 999."""

_LAST_INDEX = 2**31 - 1
_DEEPEST = 255  # the depth of a key is one byte
_LARGEST_REDEEM_SCRIPT = 520  # bytes that a script can push. Source: BIP 16
_MOST_KEYS = 20
_MOST_KEYS_SHOWN = 3

PATTERN = r"(?:[a-z]{1,20}\()+[^()\s]+\)+(?:#[a-z0-9]{8})?|[a-zA-Z](?:pub|tub)[0-9A-Za-z]{40,120}"
"""Pattern (JSON Schema, without its ends) of the texts that may be keys."""

_PKH, _SH_WPKH, _WPKH = ("pkh",), ("sh", "wpkh"), ("wpkh",)
_SINGLE = (_PKH, _WPKH, _SH_WPKH)
_MULTISIG = ("multi", "sortedmulti")
_FORMS = {*_SINGLE, *((*outer, inner) for outer in (("sh",), ("wsh",), ("sh", "wsh")) for inner in _MULTISIG)}
_KNOWN_FORMS = (
    "pkh(KEY), wpkh(KEY), sh(wpkh(KEY)), and multi(...) or sortedmulti(...) inside of sh(...), wsh(...) or sh(wsh(...))"
)


class _Version(NamedTuple):
    standard: bytes  # the version that descriptors use
    form: tuple[str, ...] | None  # the script of a key that stands alone; None: one key of a multisig


_VERSIONS = {
    bytes.fromhex(version): _Version(bytes.fromhex(standard), form)
    for version, standard, form in (
        ("0488b21e", "0488b21e", _PKH),  # xpub
        ("049d7cb2", "0488b21e", _SH_WPKH),  # ypub
        ("04b24746", "0488b21e", _WPKH),  # zpub
        ("0295b43f", "0488b21e", None),  # Ypub
        ("02aa7ed3", "0488b21e", None),  # Zpub
        ("043587cf", "043587cf", _PKH),  # tpub
        ("044a5262", "043587cf", _SH_WPKH),  # upub
        ("045f1cf6", "043587cf", _WPKH),  # vpub
        ("024289ef", "043587cf", None),  # Upub
        ("02575483", "043587cf", None),  # Vpub
        ("019da462", "019da462", _PKH),  # Ltub
        ("01b26ef6", "019da462", _SH_WPKH),  # Mtub
        ("0436f6e1", "0436f6e1", _PKH),  # ttub
    )
}

_CHARACTERS = re.compile(r"""[0-9A-Za-z()\[\],'/*@:$%{}&+\-.;<=>?!^_|~`#"\\ ]*""")  # those of the checksum
_CHECKSUM = re.compile("[ac-hj-np-z02-9]{8}")
# Texts that are no address: characters of descriptors, and the beginning of extended keys.
_MARKS = re.compile(r"[()\[\]/#*,]")
_EXTENDED_START = re.compile("[a-zA-Z](?:pub|tub)[0-9A-Za-z]{40,}")
_DESCRIPTOR = re.compile(r"((?:[a-z]{1,20}\(){1,5})([^()]*)(\)+)")
_BARE_KEY = re.compile("[0-9A-Za-z]+")
_KEY = re.compile(r"(?:\[([^\[\]]*)\])?([0-9A-Za-z]+)((?:/[^/]*)*)")
_ORIGIN = re.compile(r"[0-9a-fA-F]{8}((?:/[0-9]{1,10}['h]?)*)")
_NUMBER = re.compile("[0-9]{1,10}")
_HARDENED = re.compile(r"[^/]*['hH]")
_THRESHOLD = re.compile("[0-9]{1,2}")
_PUBLIC_KEY = re.compile("(?:0[23][0-9a-fA-F]{64})|(?:04[0-9a-fA-F]{128})")


class _Node(NamedTuple):
    """A public key; its children too if it has a chain code."""

    public_key: bytes
    chain_code: bytes | None

    def child(self, index: int) -> "_Node":
        """Return the key of an unhardened index (CKDpub of BIP 32)."""
        assert self.chain_code is not None, "only extended keys have a path"
        mixed = hmac.digest(self.chain_code, self.public_key + index.to_bytes(4, "big"), "sha512")
        point = secp256k1.ec_pubkey_add(secp256k1.ec_pubkey_parse(self.public_key), mixed[:32])
        return _Node(bytes(secp256k1.ec_pubkey_serialize(point)), mixed[32:])


class _Key(NamedTuple):
    text: str  # canonical, without its path
    node: _Node
    depth: int
    steps: tuple[tuple[int, ...], ...]  # for each step its numbers: one, or one for each branch
    is_ranged: bool

    def path(self) -> str:
        """Return the canonical text of the path, which begins with a slash."""
        steps = (f"/{step[0]}" if len(step) == 1 else f"/<{';'.join(map(str, step))}>" for step in self.steps)
        return "".join(steps) + "/*" * self.is_ranged

    def parent(self, branch: int) -> _Node:
        """Return the key at the end of the path of a branch."""
        node = self.node
        for step in self.steps:
            node = node.child(step[branch if len(step) > 1 else 0])
        return node


class _Parent(NamedTuple):
    """A key of one branch; if it is ranged, its children are the keys of the indices."""

    node: _Node
    is_ranged: bool


@dataclass(frozen=True, slots=True)
class WalletKeys:
    """The output scripts of a descriptor.

    Args:
        descriptor: canonical text with its checksum. Keys have no origin, and the standard version bytes of the
            network; those of `sortedmulti` are sorted. Parsing it returns the same wallet.
        shortened: the same for display, with the first and last characters of keys; does not identify them.
        identity: 64 hexadecimal digits, equal for wallets of a network with the same scripts in any spelling. A
            `zpub` equals `wpkh(xpub/<0;1>/*)`, and a key with a path equals the key at the end of that path. The order
            of branches does not matter, nor that of the keys of `sortedmulti`.
        is_ranged: a script for each index; otherwise a branch has one script, at index 0.
        branches: 1, or 2 with a multipath such as `<0;1>`.
    """

    descriptor: str = field(repr=False)
    shortened: str
    identity: str
    is_ranged: bool
    branches: int
    _network: UtxoDefinition = field(repr=False)
    _form: tuple[str, ...] = field(repr=False)
    _threshold: int = field(repr=False)
    _parents: tuple[tuple[_Parent, ...], ...] = field(repr=False)

    def script(self, branch: int, index: int) -> bytes:
        """Return the output script of an index of a branch.

        Raises:
            ValueError: no such branch or index.
        """
        if not 0 <= branch < self.branches or not 0 <= index <= (_LAST_INDEX if self.is_ranged else 0):
            raise ValueError(f"the wallet has no branch {branch} with index {index}")
        return _output_script(self._form, self._threshold, self._parents[branch], index)

    def address(self, branch: int, index: int) -> str:
        """Return the network's canonical address of an index of a branch.

        Raises:
            ValueError: no such branch or index.
        """
        address = self._network.address_of(self.script(branch, index))
        assert address is not None, "every accepted form has an address"
        return address


def may_be_keys(text: str) -> bool:
    """Return whether a text means keys rather than an address, so that errors can name the right fault."""
    return bool(_MARKS.search(text) or _EXTENDED_START.fullmatch(text) or _PUBLIC_KEY.fullmatch(text))


def parse_keys(text: str, definition: UtxoDefinition) -> WalletKeys:
    """Return the wallet of an output descriptor, with or without checksum, or of an extended public key.

    Args:
        text: at most `LONGEST` characters.
        definition: the network's.

    Raises:
        InvalidAddress: the text is neither, has a private key, has keys of another network, or breaks a limit. The
            message says why and the fix. It never repeats a part of the text except numbers.
    """
    if len(text) > LONGEST:
        raise InvalidAddress(f"the descriptor has more than {LONGEST} characters; give one with fewer keys")
    refuse_private_keys(text)
    if _CHARACTERS.fullmatch(text) is None:
        raise InvalidAddress(
            "the descriptor has a character that descriptors do not allow; copy it from your wallet again"
        )
    body = _of_bare_key(text, definition) if _BARE_KEY.fullmatch(text) else _without_checksum(text)
    form, threshold, keys = _parse(body, definition)
    if form[-1] == "sortedmulti":
        keys = sorted(keys, key=lambda key: (key.text, key.path()))
    branches = _count_branches(keys)
    is_ranged = any(key.is_ranged for key in keys)
    parents = tuple(tuple(_Parent(key.parent(branch), key.is_ranged) for key in keys) for branch in range(branches))
    canonical = _join(form, threshold, [key.text + key.path() for key in keys])
    shown = [f"{key.text[:7]}\N{HORIZONTAL ELLIPSIS}{key.text[-4:]}{key.path()}" for key in keys]
    if len(keys) > _MOST_KEYS_SHOWN:
        shown = [*shown[: _MOST_KEYS_SHOWN - 1], f"{len(keys) - _MOST_KEYS_SHOWN + 1} more keys"]
    check = checksum(canonical)
    return WalletKeys(
        descriptor=f"{canonical}#{check}",
        shortened=f"{_join(form, threshold, shown)}#{check}",
        identity=_identify(form, threshold, parents, is_ranged),
        is_ranged=is_ranged,
        branches=branches,
        _network=definition,
        _form=form,
        _threshold=threshold,
        _parents=parents,
    )


def next_range(highest_used: int | None, scanned_to: int) -> int | None:
    """Return the index up to which a branch must be scanned as well; None if enough indices are scanned.

    Args:
        highest_used: highest index with an output or movement; None: no index has one.
        scanned_to: last scanned index; `SCAN_RANGE` - 1 after the opening.
    """
    needed = min((-1 if highest_used is None else highest_used) + GAP, _LAST_INDEX)
    return needed if needed > scanned_to else None


def _of_bare_key(text: str, definition: UtxoDefinition) -> str:
    """Return the descriptor, without checksum, of an extended public key."""
    if _PUBLIC_KEY.fullmatch(text):
        raise InvalidAddress("a public key does not say its script; give a descriptor, such as wpkh(KEY)")
    form = _read_extended(text, definition)[0]
    if form is None:
        raise InvalidAddress(
            "the version bytes mark one key of a multisig wallet; give the wallet's whole descriptor, such as "
            "wsh(sortedmulti(2,KEY,KEY,KEY))"
        )
    return _join(form, 0, [f"{text}/<0;1>/*"])


def _without_checksum(text: str) -> str:
    body, separator, given = text.partition("#")
    if separator and _CHECKSUM.fullmatch(given) is None:
        raise InvalidAddress(
            "the checksum after # must have 8 characters; copy the descriptor again, or leave out both"
        )
    if separator and checksum(body) != given:
        raise InvalidAddress(
            "the descriptor does not fit its checksum, so a character may be mistyped; copy it from your wallet again"
        )
    return body


def _parse(body: str, definition: UtxoDefinition) -> tuple[tuple[str, ...], int, list[_Key]]:
    """Return functions from the outside in, threshold (0 without multisig) and keys of a descriptor."""
    if body.startswith("tr("):
        raise InvalidAddress("tr(...) is not supported; add the addresses of this wallet as single wallets")
    if body.startswith("[") or (body and _BARE_KEY.fullmatch(body.partition("/")[0])):
        raise InvalidAddress(
            "a key with an origin or a path does not say its script; give a descriptor, such as wpkh(KEY/<0;1>/*)"
        )
    matched = _DESCRIPTOR.fullmatch(body)
    form = tuple(matched[1].split("(")[:-1]) if matched else ()
    if matched is None or form not in _FORMS or len(matched[3]) != len(form):
        raise InvalidAddress(
            f"the descriptor has a form that is not supported or not complete; supported: {_KNOWN_FORMS}"
        )
    arguments = matched[2].split(",")
    if form in _SINGLE:
        if len(arguments) != 1:
            raise InvalidAddress(f"{form[-1]}(...) has {len(arguments)} keys; give one")
        return form, 0, [_read_key(arguments[0], definition, may_be_uncompressed=form == _PKH)]
    threshold = int(arguments[0]) if _THRESHOLD.fullmatch(arguments[0]) else 0
    count = len(arguments) - 1
    if not 1 <= threshold <= count:
        raise InvalidAddress(
            f"{form[-1]}(...) must begin with how many of its {count} keys sign: a number from 1 to {count}"
        )
    if count > _MOST_KEYS:
        raise InvalidAddress(f"{form[-1]}(...) has {count} keys; the most are {_MOST_KEYS}")
    keys = [_read_key(argument, definition, may_be_uncompressed="wsh" not in form) for argument in arguments[1:]]
    size = len(_multisig_script(threshold, [key.node.public_key for key in keys]))
    if "wsh" not in form and size > _LARGEST_REDEEM_SCRIPT:
        raise InvalidAddress(
            f"the script inside of sh(...) has {size} bytes; the most are {_LARGEST_REDEEM_SCRIPT}, enough for 15 "
            "compressed keys. Give fewer keys, or those of sh(wsh(...))"
        )
    return form, threshold, keys


def _read_key(text: str, definition: UtxoDefinition, *, may_be_uncompressed: bool) -> _Key:
    matched = _KEY.fullmatch(text)
    if matched is None:
        raise InvalidAddress(
            "a key of the descriptor is missing or malformed; copy the descriptor from your wallet again"
        )
    origin, word, path = matched.groups()
    if origin is not None:
        steps = _ORIGIN.fullmatch(origin)
        if steps is None or any(int(number) > _LAST_INDEX for number in _NUMBER.findall(steps[1])):
            raise InvalidAddress(
                "the origin of a key must be 8 hexadecimal digits and a path, such as [d34db33f/84h/0h/0h]; correct it "
                "or leave it out"
            )
    if _PUBLIC_KEY.fullmatch(word):
        if path:
            raise InvalidAddress("a single public key has no path; leave out the path, or give an extended key")
        public_key = bytes.fromhex(word)
        if len(public_key) > 33 and not may_be_uncompressed:
            raise InvalidAddress("segwit scripts need compressed public keys; give those of 66 digits")
        _check_point(public_key)
        return _Key(word.lower(), _Node(public_key, None), 0, (), False)
    _, standard_text, node, depth = _read_extended(word, definition)
    numbers, is_ranged = _read_path(path)
    if depth + len(numbers) + is_ranged > _DEEPEST:
        raise InvalidAddress(f"the path leads deeper than {_DEEPEST} levels, the most that keys have; shorten it")
    return _Key(standard_text, node, depth, numbers, is_ranged)


def _read_extended(word: str, definition: UtxoDefinition) -> tuple[tuple[str, ...] | None, str, _Node, int]:
    """Return script form of the key alone, text with the standard version, key and depth of an extended public key."""
    payload = base58_payload(word)
    if payload is None or len(payload) != 78:
        raise InvalidAddress(
            "a key is neither a public key (66 hexadecimal digits) nor an extended one (xpub...), or its checksum is "
            "wrong; copy it from your wallet again"
        )
    version, depth, origin, chain_code, public_key = (
        payload[:4],
        payload[4],
        payload[5:13],
        payload[13:45],
        payload[45:],
    )
    known = _VERSIONS.get(version)
    if known is None or known.standard not in definition.extended_key_versions:
        needed = base58.encode_check(definition.extended_key_versions[0] + payload[4:])[:4]
        raise InvalidAddress(
            f"an extended key has the version bytes of another network; keys of this network begin with {needed}"
        )
    if depth == 0 and any(origin):
        raise InvalidAddress(
            "an extended key of depth 0 has a parent, so it is damaged; copy it from your wallet again"
        )
    _check_point(public_key)
    standard = base58.encode_check(definition.extended_key_versions[0] + payload[4:])
    return known.form, str(standard), _Node(public_key, chain_code), depth


def _check_point(public_key: bytes) -> None:
    try:
        secp256k1.ec_pubkey_parse(public_key)
    except ValueError as error:
        raise InvalidAddress("a public key is no point of the curve; copy it from your wallet again") from error


def _read_path(path: str) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the steps of the path behind an extended key, and if all their children follow."""
    steps = path.split("/")[1:]
    is_ranged = bool(steps) and steps[-1] == "*"
    return tuple(_read_steps(steps[:-1] if is_ranged else steps)), is_ranged


def _read_steps(steps: Sequence[str]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for step in steps:
        is_multipath = step.startswith("<") and step.endswith(">") and ";" in step
        numbers = step[1:-1].split(";") if is_multipath else [step]
        if any(_HARDENED.fullmatch(number) for number in numbers):
            raise InvalidAddress(
                "hardened steps after an extended public key need its private key; give the extended public key behind "
                "the last hardened step"
            )
        if not all(_NUMBER.fullmatch(number) and int(number) <= _LAST_INDEX for number in numbers):
            raise InvalidAddress(
                f"a path consists of numbers up to {_LAST_INDEX}, one <0;1> and a final *; write it as /<0;1>/*"
            )
        found.append(tuple(map(int, numbers)))
        if is_multipath and (len(numbers) != 2 or len(set(found[-1])) != 2):
            raise InvalidAddress("a multipath must have two different numbers; write <0;1>")
    if sum(len(step) > 1 for step in found) > 1:
        raise InvalidAddress("a path has more than one multipath; write <0;1> once")
    return found


def _count_branches(keys: Sequence[_Key]) -> int:
    return max((len(step) for key in keys for step in key.steps), default=1)


def _join(form: Sequence[str], threshold: int, keys: Sequence[str]) -> str:
    arguments = [str(threshold), *keys] if threshold else keys
    return f"{'('.join(form)}({','.join(arguments)}{')' * len(form)}"


def _identify(form: Sequence[str], threshold: int, parents: Sequence[Sequence[_Parent]], is_ranged: bool) -> str:
    """Return a hash of the first scripts of each branch.

    Two are enough, as different keys that have the same children at 0 and 1 cannot be found.
    """
    indices = (0, 1) if is_ranged else (0,)
    firsts = sorted(b"".join(_output_script(form, threshold, branch, index) for index in indices) for branch in parents)
    # The scripts of `K/<0;1>` are the first two of `K/*`.
    kind = b"fixed" if len(firsts) > 1 and not is_ranged else b""
    return hashlib.sha256(kind + b"".join(firsts)).hexdigest()


def _output_script(form: Sequence[str], threshold: int, parents: Sequence[_Parent], index: int) -> bytes:
    keys = [(parent.node.child(index) if parent.is_ranged else parent.node).public_key for parent in parents]
    inner = form[-1]
    if inner == "pkh":
        return bytes.fromhex("76a914") + bytes(hash160(keys[0])) + bytes.fromhex("88ac")
    if inner == "wpkh":
        script = bytes.fromhex("0014") + bytes(hash160(keys[0]))
    else:
        script = _multisig_script(threshold, sorted(keys) if inner == "sortedmulti" else keys)
    if "wsh" in form:
        script = bytes.fromhex("0020") + hashlib.sha256(script).digest()
    return bytes.fromhex("a914") + bytes(hash160(script)) + bytes.fromhex("87") if form[0] == "sh" else script


def _multisig_script(threshold: int, keys: Sequence[bytes]) -> bytes:
    pushed = b"".join(bytes((len(key),)) + key for key in keys)
    return _number(threshold) + pushed + _number(len(keys)) + bytes.fromhex("ae")  # OP_CHECKMULTISIG


def _number(value: int) -> bytes:
    """Return the push of a small number: OP_1 to OP_16, or one byte."""
    return bytes((0x50 + value,)) if value <= 16 else bytes((1, value))
