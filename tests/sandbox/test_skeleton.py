"""The root that sandboxes share, made from a host of plain files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.sandbox.plan import Mount, MountKind
from envdsl.sandbox.skeleton import prepare
from tests.sandbox.conftest import as_nobody


@pytest.fixture
def host(tmp_path: Path) -> Path:
    host = tmp_path / "host"
    files = {
        "etc/ld.so.cache": "cache 1",
        "etc/ld.so.conf.d/local.conf": "/usr/local/lib",
        "etc/fonts/fonts.conf": "<fontconfig/>",
        "etc/shadow": "secret",
        "etc/hostname": "secret-machine",
        "etc/ssl/certs/ca-certificates.crt": "certificates",
        "etc/ssl/private/key.pem": "secret",
        "usr/share/zoneinfo/Etc/UTC": "TZif",
        "opt/cert.pem": "certificate",
        "home/me/.netrc": "secret",
    }
    for name, text in files.items():
        (host / name).parent.mkdir(parents=True, exist_ok=True)
        (host / name).write_text(text)
    for name in ("bin", "lib", "sbin"):
        (host / "usr" / name).mkdir()
        (host / name).symlink_to(f"usr/{name}")
    (host / "lib64").symlink_to("/usr/lib64")
    (host / "etc/localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    (host / "etc/os-release").symlink_to("../usr/lib/os-release")
    (host / "etc/ssl/cert.pem").symlink_to("../../opt/cert.pem")
    (host / "etc/services").symlink_to("gone")
    (host / "etc/alternatives").mkdir()
    (host / "etc/alternatives/awk").symlink_to("/usr/bin/mawk")
    (host / "etc/alternatives/awk.1.gz").symlink_to("/usr/share/man/man1/mawk.1.gz")
    return host


def root_of(mounts: tuple[Mount, ...]) -> Path:
    assert mounts[0].source is not None
    return Path(mounts[0].source)


def test_the_root_holds_what_programs_need_and_nothing_that_names_the_host(tmp_path: Path, host: Path) -> None:
    """Issue 2.13: a minimal root: the loader's needs, fonts, certificates, time zones."""
    root = root_of(prepare(tmp_path / "sandbox", host=host))
    assert (root / "etc/ld.so.cache").read_text() == "cache 1"
    assert (root / "etc/ld.so.conf.d/local.conf").read_text() == "/usr/local/lib"
    assert (root / "etc/fonts/fonts.conf").exists()
    assert (root / "etc/ssl/certs/ca-certificates.crt").exists()
    assert (root / "etc/ssl/cert.pem").read_text() == "certificate"  # a link out of what is there becomes a copy
    assert (root / "etc/localtime").readlink() == Path("/usr/share/zoneinfo/Etc/UTC")
    assert (root / "etc/os-release").readlink() == Path("/usr/lib/os-release")
    assert (root / "etc/alternatives/awk").readlink() == Path("/usr/bin/mawk")
    assert "user:x:1000:1000" in (root / "etc/passwd").read_text()
    for name in ("shadow", "hostname", "ssl/private", "services", "alternatives/awk.1.gz"):
        assert not os.path.lexists(root / "etc" / name)
    copied = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert "secret" not in "".join(path.read_text() for path in copied)


def test_a_merged_usr_becomes_links_and_another_gets_mounts(tmp_path: Path, host: Path) -> None:
    root = root_of(prepare(tmp_path / "sandbox", host=host))
    assert {name: str((root / name).readlink()) for name in ("bin", "lib64")} == {
        "bin": "usr/bin",
        "lib64": "usr/lib64",
    }
    (host / "lib").unlink()
    (host / "lib").mkdir()
    mounts = prepare(tmp_path / "sandbox", host=host)
    assert Mount.read_only(str(host / "lib"), "/lib") in mounts
    assert (root_of(mounts) / "lib").is_dir()
    assert not (root_of(mounts) / "lib").is_symlink()


def test_there_are_few_mounts(tmp_path: Path, host: Path) -> None:
    """Each costs start-up time: root, /usr, devices, processes, /tmp, home."""
    mounts = prepare(tmp_path / "sandbox", host=host)
    assert [mount.kind for mount in mounts] == [
        MountKind.READ_ONLY, MountKind.READ_ONLY, MountKind.DEV, MountKind.PROC, MountKind.TMPFS, MountKind.TMPFS,
    ]  # fmt: skip


def test_mounts_find_their_places(tmp_path: Path, host: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.touch()
    mounts = [
        Mount.read_only(str(tmp_path), "/root/.pyenv/versions/3.12"),
        Mount.read_only(str(settings), "/etc/settings.json"),
        Mount.writable(str(tmp_path), "/workspace"),
        Mount.writable(str(tmp_path), "/workspace/inside"),
        Mount.read_only(str(tmp_path), "/usr/local/x"),
        Mount.read_only(str(tmp_path), "/tmp/x"),
    ]
    root = root_of(prepare(tmp_path / "sandbox", mounts, host=host))
    assert (root / "root/.pyenv/versions/3.12").is_dir()
    assert (root / "etc/settings.json").is_file()
    assert (
        list((root / "workspace").iterdir()) == list((root / "usr").iterdir()) == list((root / "tmp").iterdir()) == []
    )


def test_the_same_places_share_one_root_whatever_is_mounted_there(tmp_path: Path, host: Path) -> None:
    def place(source: str, target: str) -> Path:
        return root_of(prepare(tmp_path / "sandbox", [Mount.read_only(source, target)], host=host))

    assert place("/store/a", "/envdsl/layers/0") == place("/store/b", "/envdsl/layers/0")
    assert place("/store/a", "/envdsl/layers/0") != place("/store/a", "/envdsl/layers/1")


def test_a_change_of_the_host_reaches_the_same_root(tmp_path: Path, host: Path) -> None:
    """What refers to the root (a session's script) keeps working, and a running sandbox sees whole files."""
    root = root_of(prepare(tmp_path / "sandbox", host=host))
    old = (root / "etc/ld.so.cache").open()
    (host / "etc/ld.so.cache").write_text("cache 2, longer")
    (host / "etc/fonts/fonts.conf").unlink()
    (host / "etc/alternatives/awk").unlink()
    (host / "etc/alternatives/awk").symlink_to("/usr/bin/gawk")
    (host / "etc/localtime").unlink()
    (host / "etc/localtime").write_text("TZif")
    assert root_of(prepare(tmp_path / "sandbox", host=host)) == root
    assert (root / "etc/ld.so.cache").read_text() == "cache 2, longer"
    assert (root / "etc/alternatives/awk").readlink() == Path("/usr/bin/gawk")
    assert (root / "etc/localtime").read_text() == "TZif"
    assert not (root / "etc/fonts/fonts.conf").exists()
    assert old.read() == "cache 1"
    old.close()


def test_nothing_is_read_when_nothing_changed(tmp_path: Path, host: Path) -> None:
    root = root_of(prepare(tmp_path / "sandbox", host=host))
    before = {path: path.lstat().st_mtime_ns for path in root.parent.rglob("*")}
    prepare(tmp_path / "sandbox", host=host)
    assert {path: path.lstat().st_mtime_ns for path in root.parent.rglob("*")} == before


def test_a_root_is_readable_for_everybody_whatever_the_umask(tmp_path: Path, host: Path) -> None:
    previous = os.umask(0o077)
    try:
        root = root_of(prepare(tmp_path / "sandbox", [Mount.read_only("/x", "/a/b/c")], host=host))
    finally:
        os.umask(previous)
    for path in (root, *root.rglob("*")):
        wanted = 0o755 if path.is_dir() else 0o644
        assert path.is_symlink() or path.stat().st_mode & 0o777 == wanted, path


def test_many_may_prepare_at_once(tmp_path: Path, host: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        roots = set(pool.map(lambda _: root_of(prepare(tmp_path / "sandbox", host=host)), range(16)))
    assert len(roots) == 1
    assert list(next(iter(roots)).rglob(".*")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_root_of_somebody_elses_store_is_used_as_it_is(public: Path, directory: Path) -> None:
    mounts = prepare(directory)
    stamp = root_of(mounts).with_name(root_of(mounts).name + ".stamp")
    stamp.write_text("the host has changed since")
    assert as_nobody(lambda: prepare(directory)) == mounts

    def refused() -> str:
        with pytest.raises(EnvdslError) as caught:
            prepare(public / "not there")
        return caught.value.code

    assert as_nobody(refused) == "sandbox-root-unwritable"
    prepare(directory)
