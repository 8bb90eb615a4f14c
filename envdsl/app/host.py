"""What this machine is: its platform tag, for choosing the wheels that it realises."""

from __future__ import annotations

import os
from collections.abc import Iterator

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import Platform


def host_platform() -> Platform:
    """The platform of this machine: its C library with version, and its processor.

    Raises :class:`EnvdslError` ``app-host-unsupported`` where no wheels are made for it.
    """
    system = os.uname()
    try:
        _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        major, minor, *_ = version.split(".")
        return Platform.parse(f"manylinux_{major}_{minor}_{system.machine}")
    except (ValueError, OSError):
        pass
    for tag in _musl_tags():
        return tag
    raise EnvdslError.of(
        "app-host-unsupported",
        f"layers cannot be built on this machine ({system.sysname} {system.machine})",
        hint="layers are for Linux with glibc or musl on x86_64 and aarch64; `check` and `lock` work everywhere",
        exit_status=ExitStatus.ENVIRONMENT,
    )


def _musl_tags() -> Iterator[Platform]:
    """The newest musllinux tag first; none on a system without musl."""
    from packaging.tags import platform_tags

    for tag in platform_tags():
        if tag.startswith("musllinux_"):
            yield Platform.parse(tag)
