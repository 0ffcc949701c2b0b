"""Patterns of hosts: what a list in a policy names, and which addresses need to be named themselves."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.policy.hosts import address_problem, canonical_host, host_pattern, host_patterns, is_listed, split_port


@all_rows(
    "pattern, host, port, listed",
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 8443, False),
        ("example.org:8443", "example.org", 8443, True),
        ("example.org:8443", "example.org", 443, False),
        ("example.org", "EXAMPLE.Org.", 443, True),
        ("EXAMPLE.org.", "example.org", 443, True),
        ("example.org", "www.example.org", 443, False),
        ("example.org", "example.org.evil.net", 443, False),
        ("*.example.org", "www.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "badexample.org", 443, False),
        ("*.example.org:8080", "a.example.org", 8080, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("xn--bcher-kva.example", "BÜCHER.example", 443, True),
        ("bücher。example", "bücher.example", 443, True),
        ("localhost:8080", "localhost", 8080, True),
        ("localhost:8080", "127.0.0.1", 8080, True),
        ("localhost:8080", "::1", 8080, True),
        ("localhost:8080", "::ffff:127.0.0.1", 8080, True),
        ("localhost:8080", "127.0.0.2", 8080, False),
        ("127.0.0.1:8080", "localhost", 8080, False),
        ("127.0.0.1:8080", "::ffff:127.0.0.1", 8080, True),
        ("[::1]:8080", "0:0:0:0:0:0:0:1", 8080, True),
        ("::1", "::1", 443, True),
        ("[2001:DB8:0::7]", "2001:db8::7", 443, True),
        ("192.0.2.7", "192.0.2.7", 443, True),
        ("192.0.2.7", "192.0.2.70", 443, False),
        ("_service.example.org", "_service.example.org", 443, True),
    ],
)
def test_pattern_matches_exactly_these_hosts(pattern: str, host: str, port: int, listed: bool) -> None:
    assert is_listed([host_pattern(pattern)], canonical_host(host), port) is listed


@all_rows(
    "pattern, said",
    [
        ("", "means every host"),
        ("*", "means every host"),
        ("*.", "means every host"),
        ("*:443", "star"),
        ("*.*.example.org", "star"),
        ("exam*.org", "star"),
        ("www.*.org", "star"),
        ("*example.org", "star"),
        ("*.192.0.2.7", "with a star"),
        ("https://example.org", "scheme"),
        ("example.org/path", "path"),
        ("user@example.org", "user"),
        ("example.org:", "port"),
        ("example.org:0", "port"),
        ("example.org:08", "port"),
        ("example.org:65536", "port"),
        ("example.org:http", "port"),
        ("example.org:\uff18\uff10", "port"),
        ("example.org:443", "usual port 443"),
        ("example.org:80", "usual port 80"),
        (" example.org", "blanks"),
        ("example .org", "blanks"),
        ("example.org\r\nHost: x", "control"),
        ("example.org\0", "control"),
        ("example..org", "not a valid host name"),
        (".example.org", "not a valid host name"),
        ("-example.org", "not a valid host name"),
        ("example.org..", "not a valid host name"),
        (f"{'a' * 64}.org", "not a valid host name"),
        (f"{'a.' * 127}org", "not a valid host name"),
        ("straße.example", "two ways"),
        ("a\u200db.example", "two ways"),
        ("127.1", "ends in a number"),
        ("0x7f000001", "ends in a number"),
        ("2130706433", "ends in a number"),
        ("0177.0.0.1", "ends in a number"),
        ("127.0.0.0x1", "ends in a number"),
        ("127.0.0.256", "ends in a number"),
        ("example.123", "ends in a number"),
        ("fe80::1%eth0", "percent"),
        ("exa%6dple.org", "percent"),
        ("[example.org]", "not a valid address"),
        ("[::1", "not a valid address"),
        ("[::1]x", "not a valid address"),
        ("1:2:3", "not an IPv6 address"),
    ],
)
def test_a_pattern_that_is_not_plain_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        host_pattern(pattern)
    with pytest.raises(ValueError, match=said):
        host_patterns(("example.org", pattern))


@all_rows("text", ["example.org", "*.example.org:8080", "[2001:db8::7]", "[::1]:8080", "192.0.2.7:22", "localhost:1"])
def test_a_pattern_is_written_as_it_was_read(text: str) -> None:
    assert host_pattern(text).text == text
    assert host_pattern(host_pattern(text).text) == host_pattern(text)


def test_host_and_port_are_split() -> None:
    assert split_port("example.org:22") == ("example.org", 22)
    assert split_port("[::1]:22") == ("::1", 22)
    assert split_port("::1") == ("::1", None)


@all_rows(
    "address, said",
    [
        ("1.1.1.1", ""),
        ("2606:4700:4700::1111", ""),
        ("127.0.0.1", "this machine"),
        ("127.9.9.9", "this machine"),
        ("::1", "this machine"),
        ("::ffff:127.0.0.1", "this machine"),
        ("0.0.0.0", "the unspecified address"),
        ("::", "the unspecified address"),
        ("10.0.0.1", "private"),
        ("172.16.3.4", "private"),
        ("192.168.1.1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("100.64.0.1", "private"),
        ("100.100.100.200", "private"),
        ("169.254.169.254", "link-local"),
        ("168.63.129.16", "cloud"),
        ("192.0.0.192", "cloud"),
        ("fd00:ec2::254", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "private or reserved"),
        ("64:ff9b::7f00:1", ""),
        ("64:ff9b::a00:1", ""),
        ("2002:7f00:1::", ""),
        ("2002:0a00:1::", ""),
        ("example.org", "not an address"),
    ],
)
def test_private_address_must_be_listed(address: str, said: str) -> None:
    problem = address_problem([host_pattern("example.org")], address, 443)
    if said:
        assert said in problem
    elif ":" in address and not address.startswith("2606"):
        assert problem  # whichever way Python's own tables call it
    else:
        assert not problem


def test_an_address_that_is_listed_may_be_reached() -> None:
    patterns = host_patterns(("example.org", "10.0.0.5:5432", "localhost:8080"))
    assert address_problem(patterns, "10.0.0.5", 5432) == ""
    assert address_problem(patterns, "10.0.0.5", 443)
    assert address_problem(patterns, "::1", 8080) == ""
    assert address_problem(patterns, "127.0.0.1", 8080) == ""
    assert address_problem(patterns, "127.0.0.1", 80)
