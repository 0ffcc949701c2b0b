"""The name of a system around the kernel, from the words of `/proc/version`."""

from __future__ import annotations

import pytest

from harness.plugins.doctor.doctor_command import variant_of

VERSIONS = {
    "Linux version 6.6.87.2-microsoft-standard-WSL2 (root@439a258ad544) (gcc (GCC) 11.2.0) #1 SMP": " (WSL2)",
    "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC) ) #1237-Microsoft": (
        " (WSL1: it has no Linux kernel, so no walls; use WSL2)"
    ),
    "Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org) (x86_64-linux-gnu-gcc-14)": "",
    "": "",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_kernel_names_the_system_around_it(version: str) -> None:
    assert variant_of(version) == VERSIONS[version]
