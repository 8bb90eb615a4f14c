"""What code in a sandbox can and cannot do, tried inside real ones."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

from envdsl.sandbox import doctor
from tests.sandbox.conftest import Caller

PROBE = Path(doctor.__file__).with_name("probe.py").read_text()


def test_there_is_no_network(caller: Caller) -> None:
    """Issue 2.13: no network: no interface but a loopback, and nothing can be connected to."""
    facts = json.loads(caller.python(PROBE, "-1"))
    assert facts["connected"] is False
    assert facts["routes"] == []
    assert caller.python("import socket; print([name for _, name in socket.if_nameindex()])") == "['lo']"


def test_a_listening_socket_of_the_host_cannot_be_reached(me: Caller) -> None:
    """Issue 2.13: the loopback inside is not the host's, and neither are its abstract sockets."""
    import socket

    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        name = f"\0envdsl-test-{os.getpid()}"
        unix.bind(name)
        unix.listen()
        code = (
            "import socket, sys\n"
            "print(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))) != 0,"
            " socket.socket(socket.AF_UNIX).connect_ex('\\0' + sys.argv[2]) != 0)"
        )
        assert me.python(code, str(tcp.getsockname()[1]), name[1:]) == "True True"


def test_nothing_of_the_host_is_there_but_usr(caller: Caller) -> None:
    """Issue 2.13: a minimal root: no host home directories, /run, sockets, or configuration that was not named."""
    places = ("/", "/home", "/root", "/run", "/var", "/etc")
    code = f"import json, os; print(json.dumps({{path: sorted(os.listdir(path)) for path in {places}}}))"
    seen = json.loads(caller.python(code))
    links = {name for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin") if Path("/", name).exists()}
    assert set(seen["/"]) - links == {
        "dev",
        "envdsl",
        "etc",
        "home",
        "proc",
        "root",
        "run",
        "tmp",
        "usr",
        "var",
        "workspace",
    }
    assert seen["/home"] == ["user"]
    assert seen["/root"] == seen["/run"] == []
    assert seen["/var"] == ["tmp"]
    assert {"passwd", "group", "hosts", "nsswitch.conf"} <= set(seen["/etc"])
    assert not {"shadow", "hostname", "machine-id", "ssh", "sudoers", "resolv.conf"} & set(seen["/etc"])
    assert json.loads(caller.python(PROBE, "-1"))["host"] == []


def test_devices_are_the_harmless_ones(caller: Caller) -> None:
    seen = set(caller.python("import os; print(*os.listdir('/dev'))").split())
    harmless = {
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "ptmx",
        "pts",
        "shm",
        "fd",
        "stdin",
        "stdout",
        "stderr",
    }
    assert seen - {"console", "core"} == harmless


def test_what_is_read_only_stays_read_only(caller: Caller) -> None:
    """Issue 2.13: layers cannot be written, not even by root; nor can anything of the host's."""
    code = """
import errno, os
for path in ("/x", "/usr/x", "/etc/x", "/envdsl/layers/0/x", "/run/x"):
    try:
        open(path, "w")
    except OSError as error:
        print(path, errno.errorcode[error.errno])
for path in ("/envdsl/layers/0/layer.json", "/etc/passwd"):
    try:
        os.chmod(path, 0o777)
    except OSError as error:
        print(path, errno.errorcode[error.errno])
"""
    answers = {line.split()[1] for line in caller.python(code).splitlines()}
    assert answers == {"EROFS"}
    assert len(caller.python(code).splitlines()) == 7
    assert (caller.layer / "layer.json").read_text() == "{}"


def test_nothing_of_the_kernel_can_be_written(caller: Caller) -> None:
    """Issue 2.13: root's sandboxes are the kernel's user 0, who may write /proc/sys without capabilities."""
    found = caller.run("find", "/proc", "-not", "-path", "/proc/[0-9]*", "-writable", "-not", "-type", "l").stdout
    assert found == b""
    facts = json.loads(caller.python(PROBE, "-1"))
    assert facts["writable"] == []


def test_there_are_no_capabilities_and_none_to_get(caller: Caller) -> None:
    """Issue 2.13: no capabilities, no nested user namespaces."""
    facts = json.loads(caller.python(PROBE, "-1"))
    assert int(facts["capabilities"], 16) == int(facts["bounding"], 16) == 0
    assert facts["no_new_privileges"] == "1"
    assert facts["namespace"] is not None
    unfiltered = caller.run("unshare", "--user", "true", plan=_without_filter(caller))
    assert unfiltered.status != 0  # --disable-userns holds by itself, without the filter


def test_other_processes_are_not_there(caller: Caller) -> None:
    facts = json.loads(caller.python(PROBE, "-1"))
    assert facts["processes"] == [1, 2]


def test_the_environment_is_the_plans_and_nothing_else(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2.13: cleared environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaked")
    lines = caller.run("/usr/bin/env").stdout.decode().splitlines()
    assert sorted(line for line in lines if not line.startswith("PWD=")) == [
        "HOME=/home/user",
        "LANG=C.UTF-8",
        "PATH=/usr/local/bin:/usr/bin:/bin",
    ]


def test_no_descriptor_of_the_caller_leaks(me: Caller) -> None:
    with (me.layer / "layer.json").open() as file:
        os.set_inheritable(file.fileno(), True)
        assert (
            me.python("import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:4])") == "[0, 1, 2, 3]"
        )


def test_only_the_workspace_outlives_a_run(caller: Caller) -> None:
    """Issue 2.13: /tmp and home are writable and end with the run; the workspace stays, and belongs to the caller."""
    code = """
import os
for path in ("/tmp", os.path.expanduser("~"), "/dev/shm", "/workspace"):
    print(path, os.path.exists(path + "/left"))
    open(path + "/left", "w").write("here")
"""
    home = "/home/user"
    assert caller.python(code).splitlines() == ["/tmp False", f"{home} False", "/dev/shm False", "/workspace False"]
    assert caller.python(code).splitlines() == ["/tmp False", f"{home} False", "/dev/shm False", "/workspace True"]
    left = caller.workspace / "left"
    assert left.read_text() == "here"
    assert left.stat().st_uid == caller.uid


def test_a_sandbox_is_one_user_with_a_name_and_a_home(caller: Caller) -> None:
    code = (
        "import os, pwd; name = pwd.getpwuid(os.getuid()).pw_name;"
        "print(os.getuid(), os.getgid(), name, os.path.expanduser('~user'), os.getcwd())"
    )
    assert caller.python(code) == "1000 1000 user /home/user /workspace"
    assert caller.run("uname", "-n").stdout == b"sandbox\n"


# name -> what to call, the error: numbers for x86_64 and aarch64 where they differ.
_REFUSED = {
    "keyctl": ("keyctl, 0, 0", "EPERM"),
    "add_key": ("add_key, 0, 0", "EPERM"),
    "bpf": ("bpf, 0, 0", "EPERM"),
    "perf_event_open": ("perf_event_open, 0, 0", "EPERM"),
    "userfaultfd": ("userfaultfd, 1, 0", "EPERM"),
    "mount": ("mount, 0, 0", "EPERM"),
    "fsopen": ("430, 0, 0", "EPERM"),
    "open_tree": ("428, 0, 0", "EPERM"),
    "mount_setattr": ("442, 0, 0", "EPERM"),
    "setns": ("setns, -1, 0", "EPERM"),
    "open_by_handle_at": ("open_by_handle_at, -1, 0", "EPERM"),
    "kexec_load": ("kexec_load, 0, 0", "EPERM"),
    "unshare a user namespace": ("unshare, 0x10000000, 0", "EPERM"),
    "unshare a mount namespace": ("unshare, 0x20000, 0", "EPERM"),
    "clone a user namespace": ("clone, 0x10000000 | 17, 0", "EPERM"),
    "clone3": ("435, 0, 0", "ENOSYS"),
    "io_uring_setup": ("425, 1, 0", "ENOSYS"),
    "TIOCSTI": ("ioctl, 0, 0x5412", "EPERM"),
    "TIOCSTI with upper bits that the kernel ignores": ("ioctl, 0, 0x100005412", "EPERM"),
    "AF_PACKET": ("socket, 17, 3", "EAFNOSUPPORT"),
    "AF_VSOCK": ("socket, 40, 1", "EAFNOSUPPORT"),
    "AF_ALG": ("socket, 38, 5", "EAFNOSUPPORT"),
    "AF_ALG with upper bits that the kernel ignores": ("socket, 0x100000026, 5", "EAFNOSUPPORT"),
    "AF_AX25": ("socket, 3, 5", "EAFNOSUPPORT"),
    "netlink but for routes": ("socket, 16, 3, 12", "EPROTONOSUPPORT"),
}
_NUMBERS = {
    "x86_64": {
        "keyctl": 250, "add_key": 248, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "mount": 165,
        "setns": 308, "open_by_handle_at": 304, "kexec_load": 246, "unshare": 272, "clone": 56,
        "ioctl": 16, "socket": 41,
    },
    "aarch64": {
        "keyctl": 219, "add_key": 217, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "mount": 40,
        "setns": 268, "open_by_handle_at": 265, "kexec_load": 104, "unshare": 97, "clone": 220,
        "ioctl": 29, "socket": 198,
    },
}  # fmt: skip


def test_filtered_system_calls_fail(caller: Caller) -> None:
    """Issue 2.13: the system call filter is in force."""
    numbers = _NUMBERS[platform.machine()]
    calls = "\n".join(f"call({name!r}, {arguments})" for name, (arguments, _) in _REFUSED.items())
    code = f"""
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
globals().update({numbers})
answers = {{}}
def call(name, *arguments):
    result = libc.syscall(*map(ctypes.c_long, (*arguments, 0, 0, 0)))
    answers[name] = errno.errorcode[ctypes.get_errno()] if result == -1 else "worked"
{calls}
print(json.dumps(answers))
"""
    assert json.loads(caller.python(code)) == {name: error for name, (_, error) in _REFUSED.items()}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these two ABIs are x86-64's")
@pytest.mark.parametrize("machine_code", [b"\xb8\x14\x00\x00\x00\xcd\x80\xc3", b"\xb8\x27\x00\x00\x40\x0f\x05\xc3"])
def test_system_calls_of_other_abis_are_fatal(me: Caller, machine_code: bytes) -> None:
    """getpid as i386 (int 0x80) and as x32: either would pass by a filter written for x86-64 alone."""
    code = f"""
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write({machine_code!r})
print(ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
"""
    assert me.run("/usr/bin/python3", "-I", "-c", code).status == 128 + 31  # SIGSYS


def test_what_programs_need_works(caller: Caller) -> None:
    """Threads, processes, semaphores, asyncio, sockets of one's own, terminals, time zones, names, TLS settings."""
    code = """
import asyncio, concurrent.futures, multiprocessing, os, pty, socket, sqlite3, ssl, subprocess, tempfile, zoneinfo
def double(x):
    return 2 * x
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            assert pool.map(abs, [-1, 2, -3]) == [1, 2, 3]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(double, range(10))) == 90
    async def main():
        server = await asyncio.start_server(lambda r, w: (w.write(b"hello"), w.close()), "localhost", 0)
        reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        assert await reader.read() == b"hello"
        process = await asyncio.create_subprocess_exec("true")
        assert await process.wait() == 0
    asyncio.run(main())
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(directory + "/socket")
        sqlite3.connect(directory + "/db").execute("create table t (x)")
    assert subprocess.run(["sh", "-c", "exit 3"]).returncode == 3
    os.close(pty.openpty()[0])
    ssl.create_default_context()
    zoneinfo.ZoneInfo("Europe/Berlin")
    assert socket.gethostbyname("localhost") == "127.0.0.1"
    assert len(os.urandom(16)) == 16
    print("well")
"""
    (caller.workspace / "program.py").write_text(code)
    outcome = caller.run("/usr/bin/python3", "program.py")
    assert (outcome.status, outcome.stdout.decode().strip()) == (0, "well"), outcome.stderr.decode()


def test_a_debugger_reaches_the_sandboxs_own_processes(me: Caller) -> None:
    """A decision, held here: ptrace is allowed."""
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    os._exit(libc.ptrace(0, 0, 0, 0) != 0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert me.python(code) == "0"


def _without_filter(caller: Caller):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(caller.plan, seccomp=False)
