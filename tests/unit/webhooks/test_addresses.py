"""Where nothing is ever sent, in whatever way it is written."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.webhook_urls import address_in, reach_of

PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8"]
NEVER = [
    *("0.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24"),
    *("192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
]


def in_networks(networks: list[str]) -> st.SearchStrategy[IPv4Address]:
    ranges = [
        st.integers(int(network[0]), int(network[-1])) for network in map(IPv4Network, networks)
    ]
    return st.one_of(ranges).map(IPv4Address)


def forms_of(address: IPv4Address) -> list[IPv6Address]:
    """Every way to carry it in IPv6 that some network or machine unwraps."""
    number = int(address)
    prefixes = {
        "mapped": 0xFFFF << 32,
        "translated": 0xFFFF << 48,
        "compatible": 0,
        "nat64": int(IPv6Address("64:ff9b::")),
        "local nat64, /96": int(IPv6Address("64:ff9b:1::")),
        "isatap": int(IPv6Address("2400:cb00::5efe:0:0")),
        "isatap, global": int(IPv6Address("2400:cb00::200:5efe:0:0")),
    }
    found = [IPv6Address(prefix + number) for prefix in prefixes.values()]
    found = [form for form in found if not form.is_loopback]  # ::1 is nothing carried
    high, low = number >> 16, number & 0xFFFF
    # 16 bits, 8 bits that are zero, 16 bits: as 64:ff9b:1::/48 has it
    found.append(IPv6Address((int(IPv6Address("64:ff9b:1::"))) | high << 64 | low << 40))
    found.append(IPv6Address(int(IPv6Address("2002::")) | number << 80))  # 6to4
    teredo = int(IPv6Address("2001::"))
    found.append(IPv6Address(teredo | number << 64))  # its server
    found.append(IPv6Address(teredo | 0x0808_0808 << 64 | number ^ 0xFFFF_FFFF))  # its client
    return found


@given(in_networks(NEVER))
def test_what_is_never_called_is_never_called_in_any_form(address: IPv4Address) -> None:
    assert reach_of(address) == "never"
    assert {reach_of(form) for form in forms_of(address)} == {"never"}


@given(in_networks(PRIVATE))
def test_what_is_private_is_public_in_no_form(address: IPv4Address) -> None:
    assert reach_of(address) == "private"
    assert "public" not in {reach_of(form) for form in forms_of(address)}


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_of_all_other_ipv6_only_what_is_given_out_is_public(address: IPv6Address) -> None:
    first = address.exploded[0]
    is_nat64 = address.exploded.startswith("0064:ff9b:0000:0000:0000:0000:")
    if reach_of(address) == "public":
        assert first in "23" or is_nat64 or address.ipv4_mapped


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("93.184.216.34", "public"),
        ("2606:4700::1111", "public"),
        ("::ffff:93.184.216.34", "public"),
        ("64:ff9b::93.184.216.34", "public"),
        ("::1", "private"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        ("::", "never"),
        ("fe80::1", "never"),
        ("fe80::1%2", "never"),
        ("fec0::1", "never"),
        ("ff02::1", "never"),
        ("100::1", "never"),
        ("2001:db8::1", "never"),
        ("2001:2::1", "never"),
        ("2001:10::1", "never"),
        ("3fff::1", "never"),
        ("5f00::1", "never"),
        ("fd00:ec2::254", "never"),
        ("fd20:ce::254", "never"),
        ("168.63.129.16", "never"),
        ("255.255.255.255", "never"),
    ],
)
def test_single_addresses(text: str, reach: str) -> None:
    assert reach_of(ip_address(text)) == reach


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("localhost", "127.0.0.1"),
        ("Api.LocalHost", "127.0.0.1"),
        ("example.com", None),
        ("feed.cafe", None),
        ("1.2.3.4.5", None),
    ],
)
def test_an_address_is_seen_however_it_is_written(host: str, address: str | None) -> None:
    found = address_in(host)
    assert (None if found is None else str(found)) == address
