"""``envdsl import``: what another tool has locked or installed builds to the same versions, or each package says why
not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envdsl.app.imports.found import release_of
from envdsl.lock.pylock import read_lock
from envdsl.lock.uv import find_uv
from envdsl.model.names import PythonVersion
from tests.cli.conftest import PYTHON, Cli, Result
from tests.lock.index import make_sdist, serve
from tests.wheels import make_wheel, sha256

X86, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"
MINOR = sys.version_info.minor


@pytest.fixture
def wheels(project: Path) -> Path:
    """Wheels of an application: two versions of each library, so that pins matter. No layers yet."""
    directory = project / "wheels"
    for version in ("1.0", "2.0"):
        make_wheel(
            directory,
            "app",
            version,
            requires=["lib", 'extra; extra == "more"'],
            extra_metadata="Provides-Extra: more\n",
        )
        make_wheel(directory, "lib", version, requires=["deep"])
        make_wheel(directory, "deep", version)
        make_wheel(directory, "extra", version)
    (project / "layers.d" / "all.layer").unlink()
    settings = project / "envdsl.toml"
    settings.write_text(settings.read_text().replace('default-base = "core"\n', ""))
    return directory


def uv(*arguments: str | Path, cwd: Path) -> str:
    """Real uv, without network or configuration; standard output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(find_uv()), *map(str, arguments), "--offline", "--no-progress"],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def versions(project: Path, name: str) -> dict[str, str]:
    lock = read_lock(project / "layers.d" / f"pylock.{name}.toml")
    return {package.name: package.version for package in lock.packages}


def codes(done: Result) -> dict[str, str]:
    """The reasons of a refusal by package."""
    found = json.loads(done.err.splitlines()[-1])["diagnostics"]
    return {item.get("details", {}).get("package", item["message"]): item["code"] for item in found}


def refused(run: Cli, project: Path, *arguments: str | Path) -> dict[str, str]:
    """Import something that cannot be; nothing is written."""
    before = sorted(path for path in project.rglob("*") if "store" not in path.parts)
    done = run("import", *arguments, "--name", "taken", "--json")
    assert done.status == 1, (done.out, done.err)
    assert sorted(path for path in project.rglob("*") if "store" not in path.parts) == before
    return codes(done)


# requirements.txt


def test_a_frozen_file_builds_to_its_versions(run: Cli, project: Path, wheels: Path) -> None:
    """Issue 3.9: requirements: a layer file and its lock that build to the same versions."""
    (project / "requirements.txt").write_text("app==1.0\ndeep==1.0  # old\nlib ==2.0\n")
    done = run("import", "requirements", "requirements.txt", "--name", "taken", "--python", PYTHON, "--json")
    assert done.status == 0, done.err
    assert versions(project, "taken") == {"app": "1.0", "deep": "1.0", "lib": "2.0"}
    assert done.json["layer"] == "layers.d/taken.layer"
    assert done.json["packages"][0] == {"name": "app", "version": "1.0", "hash-compared": False}
    assert run("lock", "--check").status == 0
    assert run("lock", "--json").json["locks"][0]["status"] == "unchanged"
    assert run("build", "taken").status == 0
    shown = run("show", "taken", "--json").json
    assert {item["name"]: item["version"] for item in shown["packages"]} == versions(project, "taken")
    # the versions are pins of the lock, not of the layer: an upgrade moves them
    run("lock", "taken", "--upgrade")
    assert versions(project, "taken")["app"] == "2.0"


def test_hashes_of_a_compiled_file_are_compared(run: Cli, project: Path, wheels: Path) -> None:
    """Issue 3.9: hashes given by the source must match what is locked."""
    (project / "in.txt").write_text("app[more]==1.0\nlib==1.0\n")
    compiled = uv(
        "pip", "compile", "in.txt", "--generate-hashes", "--no-strip-extras", "--no-index", "--no-config",
        "--find-links", wheels, cwd=project,
    )  # fmt: skip
    (project / "requirements.txt").write_text(compiled)
    done = run("import", "requirements", "requirements.txt", "--name", "taken", "--python", PYTHON, "--json")
    assert done.status == 0, done.err
    assert versions(project, "taken") == {"app": "1.0", "deep": "2.0", "extra": "2.0", "lib": "1.0"}
    assert all(item["hash-compared"] for item in done.json["packages"])
    assert '"app[more]"' in (project / "layers.d" / "taken.layer").read_text()


def test_a_file_of_the_index_with_another_hash_is_refused(run: Cli, project: Path, wheels: Path) -> None:
    good, bad = sha256(wheels / "lib-1.0-py3-none-any.whl"), "0" * 64
    (project / "r.txt").write_text(
        f"lib==1.0 --hash=sha256:{good}\ndeep==1.0 \\\n    --hash=sha256:{bad} \\\n    --hash=sha512:{'1' * 128}\n"
    )
    assert refused(run, project, "requirements", "r.txt", "--python", PYTHON) == {"deep": "import-hash-mismatch"}


def test_what_a_hashed_file_lacks_is_refused_and_elsewhere_added_with_a_warning(
    run: Cli, project: Path, wheels: Path
) -> None:
    hashed = f"lib==1.0 --hash=sha256:{sha256(wheels / 'lib-1.0-py3-none-any.whl')}\n"
    (project / "r.txt").write_text(hashed)
    assert refused(run, project, "requirements", "r.txt", "--python", PYTHON) == {"deep 2.0": "import-unhashed"}
    (project / "r.txt").write_text("lib==1.0\n")
    done = run("import", "requirements", "r.txt", "--python", PYTHON, "--name", "taken")
    assert done.status == 0
    assert "import-added" in done.err
    assert versions(project, "taken") == {"deep": "2.0", "lib": "1.0"}


def test_each_line_that_cannot_be_taken_says_why(run: Cli, project: Path, wheels: Path) -> None:
    """Issue 3.9: or the reason why not for each package."""
    good = sha256(wheels / "lib-1.0-py3-none-any.whl")
    (project / "more.txt").write_text("deep~=1.0\n")
    (project / "r.txt").write_text(
        "--index-url https://user:secret@index.example/simple\n"
        f"lib==1.0 --hash=sha256:{good}\n"
        "app==1.0\n"
        "extra>=1\n"
        "-r more.txt\n"
        "-e ./src\n"
        "direct @ https://user:secret@files.example/direct-1-py3-none-any.whl\n"
        "./wheels/x-1-py3-none-any.whl\n"
        "nowhere==1 ; sys_platform == 'win32'\n"
        "any==1.*\n"
    )
    done = run("import", "requirements", "r.txt", "--name", "taken", "--python", PYTHON, "--json")
    assert done.status == 1
    assert "secret" not in done.err
    assert codes(done) == {
        "app": "import-no-hash",
        "extra": "import-not-pinned",
        "deep": "import-not-pinned",
        "./src": "import-editable",
        "direct": "import-direct-url",
        "r.txt:8: ./wheels/x-1-py3-none-any.whl": "import-direct-url",
        "any": "import-not-pinned",
    }


def test_what_no_index_can_give_says_why(run: Cli, project: Path, wheels: Path) -> None:
    """Issue 3.9: sdist only, wrong platform, not there."""
    make_sdist(wheels, "source", "1.0")
    make_wheel(wheels, "native", "1.0", tag=f"cp3{MINOR}-cp3{MINOR}-win_amd64")
    (project / "r.txt").write_text("lib==1.0\nsource==1.0\nnative==1.0\napp==9.9\nunheard==1\n")
    assert refused(run, project, "requirements", "r.txt", "--python", PYTHON) == {
        "source": "import-sdist-only",
        "native": "import-wrong-platform",
        "app": "import-not-found",
        "unheard": "import-not-found",
    }


def test_an_index_of_the_network_is_asked_for_the_reasons(run: Cli, project: Path, tmp_path: Path) -> None:
    directory = tmp_path / "index"
    make_wheel(directory, "lib", "1.0")
    make_sdist(directory, "lib", "2.0")
    (project / "layers.d" / "all.layer").unlink()
    (project / "r.txt").write_text("lib==2.0\n")
    for json_form in (True, False):
        with serve(directory, json=json_form) as index:
            (project / "envdsl.toml").write_text(f'[[index]]\nname = "i"\nurl = "{index.simple}"\ndefault = true\n')
            assert refused(run, project, "requirements", "r.txt", "--python", PYTHON) == {"lib": "import-sdist-only"}


def test_versions_that_contradict_each_other_are_refused(run: Cli, project: Path, wheels: Path) -> None:
    make_wheel(wheels, "strict", "1.0", requires=["deep>=2"])
    (project / "r.txt").write_text("strict==1.0\ndeep==1.0\n")
    done = run("import", "requirements", "r.txt", "--python", PYTHON, "--name", "taken")
    assert done.status == 1
    assert "lock-" in done.err
    assert not list((project / "layers.d").iterdir())


def test_markers_are_for_the_layers_platforms(run: Cli, project: Path, wheels: Path) -> None:
    (project / "r.txt").write_text(
        "app==1.0\nlib==1.0\ndeep==1.0 ; python_version < '3'\n"
        "deep==2.0 ; python_version >= '3'\nextra==1.0 ; platform_machine == 'aarch64'\n"
    )
    done = run(
        "import", "requirements", "r.txt", "--python", PYTHON, "--name", "taken", "--platform", X86, "--platform", ARM
    )
    assert done.status == 0, done.err
    assert versions(project, "taken") == {"app": "1.0", "lib": "1.0", "deep": "2.0", "extra": "1.0"}
    lock = read_lock(project / "layers.d" / "pylock.taken.toml")
    extra = next(package for package in lock.packages if package.name == "extra")
    assert [str(platform) for platform, _ in extra.platforms] == [ARM]


def test_two_versions_for_two_platforms_are_refused(run: Cli, project: Path, wheels: Path) -> None:
    (project / "r.txt").write_text(
        "deep==1.0 ; platform_machine == 'x86_64'\ndeep==2.0 ; platform_machine == 'aarch64'\n"
    )
    both = ("--python", PYTHON, "--platform", X86, "--platform", ARM)
    assert refused(run, project, "requirements", "r.txt", *both) == {"deep": "import-wrong-platform"}


def test_prereleases_stay_possible(run: Cli, project: Path, wheels: Path) -> None:
    make_wheel(wheels, "deep", "3.0rc1")
    (project / "r.txt").write_text("lib==1.0\ndeep==3.0rc1\n")
    assert run("import", "requirements", "r.txt", "--python", PYTHON, "--name", "taken").status == 0
    assert versions(project, "taken")["deep"] == "3.0rc1"
    assert run("lock", "--check").status == 0


def test_nothing_is_overwritten(run: Cli, project: Path, wheels: Path) -> None:
    (project / "r.txt").write_text("deep==1.0\n")
    words = ("import", "requirements", "r.txt", "--python", PYTHON, "--name")
    assert run(*words, "taken").status == 0
    before = {path: path.read_bytes() for path in (project / "layers.d").iterdir()}
    again = run(*words, "taken")
    assert (again.status, "import-exists" in again.err) == (2, True)
    assert run(*words, "../outside").status == 2
    (project / "layers.d" / "other.layer").write_text(f'base named {{ python = "{PYTHON}"; packages = [ ]; }}')
    assert run(*words, "named").status == 1, "a layer of this name stands in another file"
    assert {path: path.read_bytes() for path in before} == before


def test_a_source_that_names_no_python_needs_the_option(run: Cli, project: Path, wheels: Path) -> None:
    (project / "r.txt").write_text("deep==1.0\n")
    done = run("import", "requirements", "r.txt", "--name", "taken")
    assert (done.status, "--python 3.12" in done.err) == (2, True)


def test_a_directory_without_a_project_becomes_one(
    run: Cli, project: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 3.9: the first thing that somebody does who has a requirements.txt and no layers."""
    place = tmp_path / "beginner"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    (place / "requirements.txt").write_text("deep==1.0\n")
    done = run("import", "requirements", "requirements.txt", "--name", "mine", "--python", PYTHON)
    assert done.status == 0, done.err
    assert run("build", "mine").status == 0
    assert sorted(path.name for path in (place / "layers.d").iterdir()) == ["mine.layer", "pylock.mine.toml"]


# pylock.toml


@pytest.fixture
def pylock(project: Path, wheels: Path) -> Path:
    """What uv writes for app 1.0."""
    (project / "in.txt").write_text("app[more]==1.0\nlib<2\n")
    uv(
        "pip", "compile", "in.txt", "--format", "pylock.toml", "-o", "pylock.toml", "--no-index", "--no-config",
        "--find-links", wheels, "--python-version", PYTHON, cwd=project,
    )  # fmt: skip
    return project / "pylock.toml"


def test_a_pylock_builds_to_its_versions(run: Cli, project: Path, pylock: Path) -> None:
    """Issue 3.9: pylock."""
    done = run("import", "pylock", "pylock.toml", "--name", "taken", "--python", PYTHON, "--json")
    assert done.status == 0, done.err
    assert versions(project, "taken") == {"app": "1.0", "deep": "2.0", "extra": "2.0", "lib": "1.0"}
    assert all(item["hash-compared"] for item in done.json["packages"])
    assert run("build", "taken", "--offline").status == 0


def test_a_lock_of_envdsl_names_its_python(run: Cli, project: Path, pylock: Path) -> None:
    run("import", "pylock", "pylock.toml", "--name", "taken", "--python", PYTHON)
    done = run("import", "pylock", "layers.d/pylock.taken.toml", "--name", "again")
    assert done.status == 0, done.err
    assert versions(project, "again") == versions(project, "taken")


def test_each_package_of_a_pylock_that_cannot_be_taken_says_why(run: Cli, project: Path, wheels: Path) -> None:
    """Issue 3.9: sdist only, no hash, wrong platform, direct URL, editable."""
    place = 'url = "https://files.example/'
    (project / "pylock.toml").write_text(
        'lock-version = "1.0"\ncreated-by = "test"\n'
        + "".join(
            f'[[packages]]\nname = "{name}"\nversion = "1.0"\n{rest}\n'
            for name, rest in {
                "a-sdist": f'sdist = {{ {place}a_sdist-1.0.tar.gz", hashes = {{ sha256 = "{"0" * 64}" }} }}',
                "b-weak": f'wheels = [{{ {place}b_weak-1.0-py3-none-any.whl", hashes = {{ md5 = "{"0" * 32}" }} }}]',
                "c-mac": f'wheels = [{{ {place}c_mac-1.0-py3-none-macosx_11_0_arm64.whl", '
                f'hashes = {{ sha256 = "{"0" * 64}" }} }}]',
                "d-url": f'archive = {{ {place}d_url-1.0-py3-none-any.whl", hashes = {{ sha256 = "{"0" * 64}" }} }}',
                "e-git": f'vcs = {{ type = "git", {place}e.git", commit-id = "{"a" * 40}" }}',
                "f-own": 'directory = { path = "src", editable = true }',
                "g-windows": "marker = \"sys_platform == 'win32'\"\n"
                f'sdist = {{ {place}g_windows-1.0.tar.gz", hashes = {{ sha256 = "{"0" * 64}" }} }}',
            }.items()
        )
    )
    assert refused(run, project, "pylock", "pylock.toml", "--python", PYTHON) == {
        "a-sdist": "import-sdist-only",
        "b-weak": "import-no-hash",
        "c-mac": "import-wrong-platform",
        "d-url": "import-direct-url",
        "e-git": "import-direct-url",
        "f-own": "import-editable",
    }


def test_an_index_that_serves_another_file_than_the_pylock_is_refused(run: Cli, project: Path, pylock: Path) -> None:
    make_wheel(project / "wheels", "deep", "2.0", files={"deep.py": "evil = True\n"})
    assert refused(run, project, "pylock", "pylock.toml", "--python", PYTHON) == {"deep": "import-hash-mismatch"}


@pytest.mark.parametrize(
    "content", [b"", b"not toml [", b"\xff", b'lock-version = "9.0"\ncreated-by = "x"\npackages = []']
)
def test_what_is_no_pylock_is_refused(content: bytes, run: Cli, project: Path) -> None:
    (project / "pylock.toml").write_bytes(content)
    done = run("import", "pylock", "pylock.toml", "--name", "taken", "--python", PYTHON)
    assert (done.status, "import-unreadable" in done.err) == (1, True), done.err


# uv.lock


@pytest.fixture
def uv_project(project: Path, wheels: Path, tmp_path: Path) -> Path:
    """A project that uv has locked."""
    place = tmp_path / "application"
    place.mkdir()
    make_wheel(wheels, "tool", "1.0")
    (place / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.9"\n'
        'dependencies = ["app[more]<2", "lib==2.0; python_version >= \'3.9\'", "nothing; sys_platform == \'win32\'"]\n'
        '[project.optional-dependencies]\ncli = ["tool"]\n'
        f'[dependency-groups]\ndev = ["tool"]\n[tool.uv]\nno-index = true\nfind-links = ["{wheels}"]\n'
    )
    make_wheel(wheels, "nothing", "1.0")
    uv("lock", "--python", sys.executable, cwd=place)
    return place


def test_a_uv_lock_builds_to_its_versions(run: Cli, project: Path, uv_project: Path) -> None:
    """Issue 3.9: uv.lock, through uv's own export."""
    done = run("import", "uv", uv_project / "uv.lock", "--name", "taken", "--python", PYTHON, "--json")
    assert done.status == 0, done.err
    assert versions(project, "taken") == {"app": "1.0", "deep": "2.0", "extra": "2.0", "lib": "2.0"}
    assert set(done.json["left-out"]) == {"mine", "nothing"}
    layer = (project / "layers.d" / "taken.layer").read_text()
    assert '    "app[more]"\n    "lib"\n  ];' in layer
    assert run("build", "taken", "--offline").status == 0


def test_extras_and_groups_of_a_uv_lock_are_taken_when_asked_for(run: Cli, project: Path, uv_project: Path) -> None:
    for option in (("--extra", "cli"), ("--group", "dev")):
        name = option[1]
        done = run("import", "uv", uv_project, "--name", name, "--python", PYTHON, *option)
        assert done.status == 0, done.err
        assert versions(project, name)["tool"] == "1.0"
        assert '"tool"' in (project / "layers.d" / f"{name}.layer").read_text()


def test_the_spelling_uv_lock_works_in_the_projects_own_directory(
    run: Cli, project: Path, uv_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 3.9: `envdsl import uv.lock`."""
    monkeypatch.chdir(uv_project)
    done = run("import", "uv.lock", "--name", "taken", "--python", PYTHON, "--project", project)
    assert done.status == 0, done.err


def test_uv_runs_no_interpreter_of_the_project(run: Cli, project: Path, uv_project: Path, tmp_path: Path) -> None:
    """Issue 3.9: never execute anything of what is imported."""
    witness = trap(uv_project / ".venv", tmp_path)
    assert run("import", "uv", uv_project, "--name", "taken", "--python", PYTHON).status == 0
    assert not witness.exists()


def test_a_uv_lock_without_its_project_says_what_is_missing(run: Cli, project: Path, uv_project: Path) -> None:
    (uv_project / "pyproject.toml").unlink()
    done = run("import", "uv", uv_project, "--name", "taken", "--python", PYTHON)
    assert (done.status, "pyproject.toml beside it" in done.err) == (1, True)


# virtual environments


def trap(environment: Path, tmp_path: Path) -> Path:
    """An interpreter in ``environment`` that leaves a file behind when somebody runs it."""
    witness = tmp_path / "was-run"
    for name in ("python", "python3", f"python{PYTHON}"):
        place = environment / "bin" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_text(f'#!/bin/sh\ntouch {witness}\nexec {sys.executable} "$@"\n')
        place.chmod(0o755)
    return witness


@pytest.fixture
def environment(project: Path, wheels: Path, tmp_path: Path) -> Path:
    """A virtual environment with app 1.0 and an old library, made by uv."""
    place = tmp_path / "env"
    uv("venv", place, "--python", sys.executable, "--no-config", cwd=tmp_path)
    install(place, wheels, "app[more]==1.0", "lib<2")
    return place


def install(environment: Path, wheels: Path, *what: str | Path, options: tuple[str, ...] = ()) -> None:
    uv(
        "pip", "install", *what, "--python", environment / "bin" / "python", "--no-index", "--find-links", wheels,
        "--no-config", *options, cwd=environment,
    )  # fmt: skip


def test_a_venv_builds_to_its_versions(run: Cli, project: Path, environment: Path, tmp_path: Path) -> None:
    """Issue 3.9: venv; nothing of it is executed."""
    witness = trap(environment, tmp_path)
    library = next(environment.glob("lib/python3*/site-packages"))
    (library / "evil.pth").write_text(f"import pathlib; pathlib.Path({str(witness)!r}).touch()\n")
    done = run("import", "venv", environment, "--name", "taken", "--json")
    assert done.status == 0, done.err
    assert not witness.exists()
    assert versions(project, "taken") == {"app": "1.0", "deep": "2.0", "extra": "2.0", "lib": "1.0"}
    assert f'python = "{PYTHON}"' in (project / "layers.d" / "taken.layer").read_text()
    built = run("build", "taken")
    assert built.status == 0, built.err
    layer = Path(built.rows[0][2])
    for name in ("app", "lib", "deep", "extra"):
        assert (layer / "site-packages" / f"{name}.py").read_bytes() == (library / f"{name}.py").read_bytes()


def test_what_pip_installed_is_read_as_well(run: Cli, project: Path, wheels: Path, tmp_path: Path) -> None:
    place = tmp_path / "with-pip"
    done = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this Python has no ensurepip")
    command = [place / "bin" / "python", "-m", "pip", "install", "--no-index", "--find-links", wheels, "lib==1.0", "-q"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    # Up to 3.11 the environment brings a setuptools, which something in it may import.
    for info in place.glob("lib/python3*/site-packages/setuptools-*.dist-info"):
        make_wheel(wheels, "setuptools", info.name.removesuffix(".dist-info").partition("-")[2])
    taken = run("import", "venv", place, "--name", "taken", "--json")
    assert taken.status == 0, taken.err
    assert "pip" in taken.json["left-out"]
    found = versions(project, "taken")
    found.pop("setuptools", None)
    assert found == {"deep": "2.0", "lib": "1.0"}


def test_what_a_venv_requires_and_lacks_is_said(run: Cli, project: Path, environment: Path, wheels: Path) -> None:
    uv("pip", "uninstall", "deep", "--python", environment / "bin" / "python", "--no-config", cwd=project)
    done = run("import", "venv", environment, "--name", "taken", "--json")
    assert done.json["added"] == ["deep 2.0"]
    assert "import-added" in done.err


def dist_info(environment: Path, name: str, **files: str) -> Path:
    """A distribution as some installer may have left it."""
    library = next(environment.glob("lib/python3*/site-packages"))
    info = library / f"{name}-1.0.dist-info"
    info.mkdir()
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\n",
        **files,
    }
    for file, text in texts.items():
        if text:
            (info / file).write_text(text)
    return info


def test_what_was_not_installed_from_an_index_says_so(
    run: Cli, project: Path, environment: Path, wheels: Path, tmp_path: Path
) -> None:
    """Issue 3.9: direct URL, editable, not a wheel install."""
    install(environment, wheels, make_wheel(tmp_path / "own", "byfile", "1"))

    def direct(**value: Any) -> dict[str, str]:
        return {"direct_url.json": json.dumps({"url": "https://user:secret@x.example/y", **value})}

    dist_info(environment, "edited", **direct(dir_info={"editable": True}))
    dist_info(environment, "copied", **direct(dir_info={}))
    dist_info(environment, "cloned", **direct(vcs_info={"vcs": "git", "commit_id": "a"}))
    dist_info(environment, "distutils", WHEEL="")
    library = next(environment.glob("lib/python3*/site-packages"))
    (library / "ancient-1.0-py3.6.egg-info").write_text("Name: ancient\n")
    (library / "linked.egg-link").write_text("/somewhere\n")
    found = refused(run, project, "venv", environment)
    assert found == {
        "byfile": "import-direct-url",
        "edited": "import-editable",
        "copied": "import-direct-url",
        "cloned": "import-direct-url",
        "distutils": "import-not-a-wheel",
        "ancient-1.0-py3.6.egg-info": "import-not-a-wheel",
        "linked.egg-link": "import-not-a-wheel",
    }


def test_a_package_that_cannot_be_taken_can_be_left_out(run: Cli, project: Path, environment: Path) -> None:
    """Issue 3.9: the environment that somebody develops in has their own code in it."""
    dist_info(environment, "My_Own", **{"direct_url.json": '{"url": "file:///x", "dir_info": {"editable": true}}'})
    assert refused(run, project, "venv", environment) == {"my-own": "import-editable"}
    done = run("import", "venv", environment, "--name", "taken", "--without", "my.own", "--json")
    assert done.status == 0, done.err
    assert done.json["left-out"] == {"my-own": "--without"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda env: (env / "pyvenv.cfg").unlink(),
        lambda env: shutil.rmtree(env / "lib"),
        lambda env: dist_info(env, "x", METADATA=""),
        lambda env: dist_info(env, "x", METADATA="Name: x\nVersion: one\n"),
        lambda env: dist_info(env, "x", METADATA="Name: ../../x\nVersion: 1\n"),
        lambda env: dist_info(env, "x", **{"direct_url.json": "{"}),
        lambda env: dist_info(env, "x", **{"direct_url.json": "[" * 100_000}),
        lambda env: dist_info(env, "x", METADATA="Name: x\nVersion: 1\n" + "y" * (17 << 20)),
    ],
)
def test_a_damaged_venv_is_refused(
    damage: Callable[[Path], object], run: Cli, project: Path, environment: Path
) -> None:
    damage(environment)
    done = run("import", "venv", environment, "--name", "taken")
    assert (done.status, "import-unreadable" in done.err) == (1, True), done.err
    assert not list((project / "layers.d").iterdir())


@pytest.mark.parametrize(
    ("specifiers", "minor"),
    [
        (">=3.12,<3.13", 12),
        ("==3.11.*", 11),
        ("~=3.10.2", 10),
        (">=3.12", None),
        ("", None),
        ("<3", None),
        ("no", None),
    ],
)
def test_requires_python_may_leave_one_release(specifiers: str, minor: int | None) -> None:
    assert release_of(specifiers) == (PythonVersion(minor) if minor is not None else None)
