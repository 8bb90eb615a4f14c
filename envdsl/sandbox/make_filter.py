"""Compile the system call filter of every supported machine: ``python -m envdsl.sandbox.make_filter``.

For developers: it needs pyseccomp and libseccomp. The compiled filters are shipped, so that a sandbox needs
neither; a test holds them against what this module makes.

A list of what is denied, modelled on Flatpak's (``common/flatpak-run.c``) and on what Docker's default profile
leaves out: kernel surface that code in a sandbox has no honest use for, most of it behind bugs of the past.
It is the second line of defence: the first is that a sandbox has no capabilities and no namespaces to get
them in. Everything else is allowed, new system calls included. On purpose allowed: ``ptrace`` and
``process_vm_readv`` (debuggers; they reach only the sandbox's own processes), ``seccomp`` and Landlock (code that
narrows itself further), memory policy calls (numerical libraries).
"""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pyseccomp as libseccomp
from pyseccomp import EQ, ERRNO, GE, MASKED_EQ, NE, Arg, SyscallFilter

FILTERS = Path(__file__).parent / "filters"
MACHINES = {"x86_64": libseccomp.Arch.X86_64, "aarch64": libseccomp.Arch.AARCH64}

# Refused with EPERM, whatever the arguments.
DENIED = (
    # kernel keyrings: not namespaced by bubblewrap's namespaces
    "add_key", "keyctl", "request_key",
    # programs and probes inside the kernel
    "bpf", "perf_event_open", "userfaultfd",
    # mounts and roots
    "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree",
    "pivot_root", "umount2",
    # other namespaces; file handles, which pass over mounts
    "setns", "open_by_handle_at",
    # the machine itself
    "acct", "adjtimex", "clock_adjtime", "clock_settime", "delete_module", "finit_module", "init_module", "ioperm",
    "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie", "quotactl", "quotactl_fd", "reboot",
    "setdomainname", "sethostname", "settimeofday", "swapoff", "swapon", "syslog", "vhangup",
    # other processes' memory on other nodes; obsolete calls
    "migrate_pages", "move_pages", "nfsservctl", "uselib", "ustat", "sysfs", "_sysctl", "modify_ldt",
)  # fmt: skip

# As if this kernel did not have them: programs then take the older way, which can be filtered (clone) or is
# watched by everybody (no io_uring, whose operations pass by every filter).
MISSING = ("clone3", "io_uring_enter", "io_uring_register", "io_uring_setup")

_NEW_NAMESPACES = {
    "CLONE_NEWTIME": 0x00000080,
    "CLONE_NEWNS": 0x00020000,
    "CLONE_NEWCGROUP": 0x02000000,
    "CLONE_NEWUTS": 0x04000000,
    "CLONE_NEWIPC": 0x08000000,
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000,
}
_CSIGNAL = 0x000000FF  # in clone's flags, the bits where unshare has CLONE_NEWTIME

# Terminal requests that put input into somebody else's terminal (CVE-2017-5226, CVE-2023-28100).
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C
_IOCTL_BITS = 0xFFFFFFFF  # the kernel ignores the upper half, so the comparison must as well (CVE-2019-10063)

# unix, inet, inet6, and netlink for routes alone (getifaddrs). Not AF_VSOCK above all: no namespace holds it.
_SOCKET_FAMILIES = (1, 2, 10, 16)
_AF_NETLINK = 16
_NETLINK_ROUTE = 0


def make(machine: str) -> bytes:
    """The filter for ``machine`` as the kernel's BPF instructions, in the form that ``bwrap --seccomp`` reads."""
    rules = SyscallFilter(libseccomp.ALLOW)
    arch = MACHINES[machine]
    if not rules.exist_arch(arch):
        rules.add_arch(arch)
        rules.remove_arch(libseccomp.system_arch())
    # 32-bit system calls and x32 would pass by everything that follows.
    rules.set_attr(libseccomp.Attr.ACT_BADARCH, libseccomp.KILL_PROCESS)
    rules.set_attr(libseccomp.Attr.CTL_OPTIMIZE, 2)  # a binary tree: fewer instructions for each system call

    for name in DENIED:
        rules.add_rule(ERRNO(errno.EPERM), name)
    for name in MISSING:
        rules.add_rule(ERRNO(errno.ENOSYS), name)
    for flag in _NEW_NAMESPACES.values():
        rules.add_rule(ERRNO(errno.EPERM), "unshare", Arg(0, MASKED_EQ, flag, flag))
        if not flag & _CSIGNAL:
            rules.add_rule(ERRNO(errno.EPERM), "clone", Arg(0, MASKED_EQ, flag, flag))
    for request in (_TIOCSTI, _TIOCLINUX):
        rules.add_rule(ERRNO(errno.EPERM), "ioctl", Arg(1, MASKED_EQ, _IOCTL_BITS, request))
    refused = ERRNO(errno.EAFNOSUPPORT)
    for family in range(max(_SOCKET_FAMILIES)):
        if family not in _SOCKET_FAMILIES:
            rules.add_rule(refused, "socket", Arg(0, EQ, family))
    rules.add_rule(refused, "socket", Arg(0, GE, max(_SOCKET_FAMILIES) + 1))
    rules.add_rule(ERRNO(errno.EPROTONOSUPPORT), "socket", Arg(0, EQ, _AF_NETLINK), Arg(2, NE, _NETLINK_ROUTE))

    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def main() -> None:
    """Write the filter of every machine to where it is shipped from."""
    FILTERS.mkdir(exist_ok=True)
    for machine in MACHINES:
        (FILTERS / f"{machine}.bpf").write_bytes(make(machine))


if __name__ == "__main__":
    main()
