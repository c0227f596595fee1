"""The EVM address codec, compared with the checksums of eth_utils."""

import pytest
from eth_utils.address import is_checksum_address, is_hex_address, to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from control.networks.addresses import InvalidAddress
from control.networks.families import FAMILIES, codec_for

codec = codec_for("evm")
addresses = st.binary(min_size=20, max_size=20).map(lambda octets: "0x" + octets.hex())

# Source: https://eips.ethereum.org/EIPS/eip-55, test cases
EIP_55 = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


@pytest.mark.parametrize("address", EIP_55)
def test_the_examples_of_the_standard(address: str) -> None:
    assert codec.parse(address) == address.lower()
    assert codec.present(address.lower()) == address


@given(addresses)
def test_presents_as_eth_utils_does_and_reads_every_accepted_form(address: str) -> None:
    shown = codec.present(address)
    assert shown == to_checksum_address(address)
    for form in (address, shown, "0x" + address[2:].upper(), "0X" + address[2:].upper()):
        assert codec.parse(form) == address


@given(addresses, st.integers(min_value=2, max_value=41))
def test_one_letter_in_the_other_case_is_refused_as_eth_utils_does(address: str, position: int) -> None:
    shown = codec.present(address)
    changed = shown[:position] + shown[position].swapcase() + shown[position + 1 :]
    digits = changed[2:]
    if digits in (digits.lower(), digits.upper()) or is_checksum_address(changed):
        assert codec.parse(changed) == address
    else:
        with pytest.raises(InvalidAddress, match="checksum"):
            codec.parse(changed)


@given(st.text(max_size=50))
def test_other_texts_are_refused(text: str) -> None:
    if not (text.lower().startswith("0x") and is_hex_address(text)):
        with pytest.raises(InvalidAddress):
            codec.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "0x" + "1" * 39,
        "0x" + "1" * 41,
        "1" * 40,
        " 0x" + "1" * 40,
        "0x" + "1" * 40 + "\n",
        "0x" + "g" * 40,
        "0x" + "\uff11" * 40,  # full-width digits
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
        "x" * 5000,
    ],
)
def test_malformed_addresses_are_refused_with_a_short_reason(text: str) -> None:
    with pytest.raises(InvalidAddress, match="0x and 40 hexadecimal digits") as caught:
        codec.parse(text)
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


def test_every_family_describes_its_addresses() -> None:
    for family in FAMILIES:
        assert codec_for(family).address_format
