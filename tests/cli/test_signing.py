"""Signed bundles: who trusts a key takes what it has signed, and nothing else."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from envdsl.model.canonical import canonical_json
from envdsl.store.archive import Writer
from tests.cli import bundles
from tests.cli.conftest import Cli, clone


@pytest.fixture
def fresh(pristine_store: Path, tmp_path: Path) -> Path:
    return clone(pristine_store, tmp_path / "fresh")


@pytest.fixture
def key(run: Cli, tmp_path: Path) -> Path:
    file = tmp_path / "builder.key"
    assert run("bundle", "keygen", file).status == 0
    return file


@pytest.fixture
def signed(run: Cli, key: Path, tmp_path: Path) -> Path:
    run("lock")
    file = tmp_path / "signed.tar.zst"
    done = run("bundle", "create", "core", "-o", file, "--no-interpreter", "--sign", key)
    assert done.status == 0, done.err
    return file


def test_what_a_trusted_key_signed_is_imported(run: Cli, key: Path, signed: Path, fresh: Path, tmp_path: Path) -> None:
    """Issue 3.8: bundles are signed."""
    done = run("bundle", "import", signed, "--trust", f"{key}.pub", "--store", fresh)
    assert done.status == 0, done.err
    assert done.rows[0][0] == "imported"
    # without --trust a signature is no hindrance
    assert run("bundle", "import", signed, "--store", fresh).status == 0
    # several may be trusted
    run("bundle", "keygen", tmp_path / "other.key")
    both = ("--trust", tmp_path / "other.key.pub", "--trust", f"{key}.pub")
    assert run("bundle", "import", signed, *both, "--store", fresh).status == 0


def test_a_signature_is_the_same_every_time(run: Cli, key: Path, signed: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar.zst"
    done = run("bundle", "create", "core", "-o", again, "--no-interpreter", "--sign", key, "--json")
    assert again.read_bytes() == signed.read_bytes()
    assert len(done.json["signer"]) == 64


def test_an_unsigned_bundle_is_refused_where_a_key_is_trusted(run: Cli, key: Path, fresh: Path, tmp_path: Path) -> None:
    run("lock")
    file = tmp_path / "plain.tar.zst"
    assert run("bundle", "create", "core", "-o", file, "--no-interpreter").status == 0
    done = run("bundle", "import", file, "--trust", f"{key}.pub", "--store", fresh)
    assert (done.status, "app-bundle-unsigned" in done.err) == (3, True)
    assert not list((fresh / "wheelhouse").iterdir())


def test_another_signer_is_refused(run: Cli, signed: Path, fresh: Path, tmp_path: Path) -> None:
    run("bundle", "keygen", tmp_path / "other.key")
    done = run("bundle", "import", signed, "--trust", tmp_path / "other.key.pub", "--store", fresh)
    assert (done.status, "app-bundle-untrusted" in done.err) == (3, True)
    assert not list((fresh / "wheelhouse").iterdir())


def forged(file: Path, manifest: dict[str, Any], contents: dict[str, bytes], signature: bytes) -> Path:
    """A bundle of this list with a signature from elsewhere; it ends after them."""
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.add_list("bundle.json", canonical_json(manifest))
        writer.add_list("bundle.sig", signature)
        writer.finish()
    return file


def test_a_list_that_was_changed_after_it_was_signed_is_refused(
    run: Cli, key: Path, signed: Path, fresh: Path, tmp_path: Path
) -> None:
    manifest, contents = bundles.load(signed)
    signature = contents["bundle.sig"]
    manifest["platform"] = "manylinux_2_99_x86_64"
    file = forged(tmp_path / "forged.tar.zst", manifest, contents, signature)
    done = run("bundle", "import", file, "--trust", f"{key}.pub", "--store", fresh)
    assert (done.status, "app-bundle-signature" in done.err) == (3, True)
    # a signature is 64 bytes: nothing can hide behind it
    long = forged(tmp_path / "long.tar.zst", manifest, contents, signature + b"x")
    done = run("bundle", "import", long, "--store", fresh)
    assert (done.status, "archive-list" in done.err) == (1, True)


def test_keys_are_kept_from_others_and_from_being_replaced(run: Cli, key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    done = run("bundle", "keygen", key)
    assert (done.status, "app-key-exists" in done.err) == (2, True)
    assert key.read_bytes() == before


def test_what_is_no_key_is_said(run: Cli, key: Path, signed: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("secret words\n")
    for wrong in (tmp_path / "text", key):
        done = run("bundle", "import", signed, "--trust", wrong)
        assert (done.status, "error[app-key]" in done.err, "secret words" in done.err) == (2, True, False)
