"""One run of ``uv pip compile``.

uv gets explicit arguments and a clean environment: no configuration file, no settings of the project that
lies in the current directory, an absolute interpreter, no downloads of Python, no builds. Credentials go to
it through its environment, where other users of the machine cannot read them, unlike arguments.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.credentials import variable
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.question import Answer, Question, parse_dependents, parse_packages, parse_yanked
from envdsl.model.names import Platform, PythonVersion

if TYPE_CHECKING:
    from envdsl.lock.routing import Route

# The first release with all the options below.
OLDEST_UV = (0, 11)
PATIENCE = 600.0  # seconds for one question; an unlucky one has more candidates than anybody can look at

# What of our environment uv may see: where its cache is, how to get through to an index, who we are there.
_INHERITED = re.compile(
    r"HOME|PATH|TMPDIR|LANG|LC_.*|XDG_(CACHE|DATA|CONFIG)_HOME|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|SSL_CLIENT_CERT|(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy|NETRC"
    r"|UV_(CACHE_DIR|HTTP_TIMEOUT|HTTP_CONNECT_TIMEOUT|HTTP_RETRIES|CONCURRENT_DOWNLOADS|INSECURE_HOST|CREDENTIALS_DIR)"
    r"|PYTHON_KEYRING_BACKEND"
)
_GLIBCS = (17, 28, *range(31, 41))  # of the manylinux platforms that uv knows


class UvFailure(Exception):  # noqa: N818 - an answer that is passed on, not an error that anybody reports
    """uv said no. ``message`` is what it said, redacted."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True)
class Uv:
    """The resolver, with the sources it may use: by ``route``, if some of them have names of their own."""

    configuration: IndexConfiguration
    interpreter: Path
    offline: bool = False
    route: Route | None = None

    def resolve(self, question: Question) -> Answer:
        """The packages for ``question``. Raises :class:`UvFailure`, or EnvdslError (``lock-uv-…``)."""
        with _inputs(question) as directory:
            output = directory / "pylock.toml"
            if question.preferences:
                output.write_text(_preferences(question.preferences), encoding="utf-8")
            arguments = ["--format", "pylock.toml", "--output-file", str(output)]
            message = self._run(question, directory, arguments, offline=self.offline)
            return Answer(parse_packages(output.read_text(encoding="utf-8"), directory), parse_yanked(message))

    def dependents(self, question: Question) -> dict[str, set[str]]:
        """Which packages require each package of the answer; ``question`` has to pin them all.

        The metadata that this takes lie in uv's cache since :meth:`resolve`, so the network is not asked first.
        """
        with _inputs(question) as directory:
            output = directory / "out.txt"
            arguments = ["--format", "requirements.txt", "--output-file", str(output), "--annotation-style", "split"]
            try:
                self._run(question, directory, arguments, offline=True)
            except UvFailure:
                if self.offline:
                    raise
                self._run(question, directory, arguments, offline=False)
            return parse_dependents(output.read_text(encoding="utf-8"))

    def _run(self, question: Question, directory: Path, arguments: list[str], *, offline: bool) -> str:
        """Run uv; returns what it had to say. ``_inputs`` made the files that the arguments name."""
        if self.route is not None:
            sources, environment = _routed_sources(self.route, directory)
        else:
            sources, environment = _sources(self.configuration)
        command = [str(find_uv()), "pip", "compile", "requirements.in", *arguments]
        command += ["--system-certs", "--no-python-downloads", "--only-binary", ":all:", "--no-header"]
        command += ["--no-progress", "--color", "never", "--python", str(self.interpreter)]
        command += ["--python-version", newest_patch(question.python)]
        command += ["--python-platform", python_platform(question.platform)]
        command += [*sources, "--index-strategy", self.configuration.strategy]
        for option in ("constraints", "overrides", "excludes"):
            if getattr(question, option):
                command += [f"--{option}", f"{option}.txt"]
        for place in question.find_links:
            command += ["--find-links", str(place)]
        if self.configuration.keyring:
            command += ["--keyring-provider", "subprocess"]
        if question.prereleases:
            command += ["--prerelease", "allow"]
        if question.exclude_newer:
            command += ["--exclude-newer", question.exclude_newer]
            for name in question.exempt:
                command += ["--exclude-newer-package", f"{name}=2999-01-01T00:00:00Z"]
        if offline:
            command += ["--offline"]
        elif question.refresh is True:
            command += ["--refresh"]
        else:
            for name in question.refresh or ():
                command += ["--refresh-package", name]
        inherited = {
            name: value
            for name, value in self.configuration.environment.items()
            if _INHERITED.fullmatch(name) and value
        }
        try:
            done = subprocess.run(
                command,
                cwd=directory,
                env=inherited | environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise _gave_up() from None
        if self.route is not None:
            self.route.check(gave_up=done.returncode != 0)
        message = self.configuration.redact(done.stderr)
        if done.returncode == 2 and ("unexpected argument" in message or "invalid value" in message):
            raise _too_old(message)
        if done.returncode != 0:
            raise UvFailure(message)
        return message


def _gave_up() -> EnvdslError:
    return EnvdslError.of(
        "lock-uv-timeout",
        f"uv found no answer within {PATIENCE:g} seconds",
        hint="ask for less at once, or narrow the versions: some questions have too many answers that nearly fit",
    )


@lru_cache(maxsize=1)
def find_uv() -> Path:
    """The uv of its PyPI package. Raises EnvdslError ``lock-uv-missing``."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise EnvdslError.of(
            "lock-uv-missing",
            "uv, which resolves layers, is not installed beside envdsl",
            hint=f"pip install 'uv>={'.'.join(map(str, OLDEST_UV))}' in the environment of envdsl",
            exit_status=ExitStatus.ENVIRONMENT,
        ) from error


@lru_cache
def newest_patch(python: PythonVersion) -> str:
    """The patch release that layers of ``python`` are resolved for, as ``3.12.13``: the one that uv would install.

    A feature release alone means its first patch release to uv, and hides what asks for a later one. uv knows
    the releases without a network. For one that it does not know, the feature release.
    """
    command = [str(find_uv()), "python", "list", f"cpython@{python}", "--only-downloads", "--offline", "--no-config"]
    command += ["--output-format", "json"]
    environment = {name: value for name, value in os.environ.items() if _INHERITED.fullmatch(name)}
    done = subprocess.run(command, capture_output=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    try:
        found = [str(item["version"]) for item in json.loads(done.stdout)] if done.returncode == 0 else []
    except (ValueError, TypeError, KeyError):
        found = []
    patches = [int(match[1]) for item in found if (match := re.fullmatch(rf"{re.escape(str(python))}\.(\d+)", item))]
    return f"{python}.{max(patches)}" if patches else str(python)


def python_platform(platform: Platform) -> str:
    """uv's name for a platform: the one with the newest C library that is no newer than the platform's."""
    if platform.libc == "musllinux":
        return f"{platform.machine}-unknown-linux-musl"
    glibc = max((minor for minor in _GLIBCS if minor <= platform.minor), default=_GLIBCS[0])
    return f"{platform.machine}-manylinux_2_{glibc}"


def _sources(configuration: IndexConfiguration) -> tuple[list[str], dict[str, str]]:
    """uv's arguments for the sources, and the variables that hold the credentials of those with any."""
    arguments: list[str] = ["--no-config"]
    environment: dict[str, str] = {}
    pages: list[str] = []
    indexes = [source for source in configuration.sources if not source.flat]
    for source in configuration.sources:
        source.check_directory()
        pair = configuration.credentials(source)
        if source.flat:
            if source.directory is not None:
                arguments += ["--find-links", str(source.directory)]
            else:
                pages.append(_with_userinfo(source.url, pair))
            continue
        name = f"envdsl-{indexes.index(source)}"
        option = "--default-index" if source is indexes[-1] else "--index"
        arguments += [option, f"{name}={source.url}"]
        if pair is not None:
            environment[variable(name, "USERNAME")], environment[variable(name, "PASSWORD")] = pair
    if not indexes:
        arguments += ["--no-index"]
    if pages:
        environment["UV_FIND_LINKS"] = ",".join(pages)
    return arguments, environment


def _routed_sources(route: Route, directory: Path) -> tuple[list[str], dict[str, str]]:
    """uv's arguments for the one index that ``route`` is, and the variables with the credentials for files.

    The sources stand in a configuration file as indexes for nothing: that is how uv learns whom it meets where.
    """
    configuration = route.configuration
    arguments = ["--config-file", "uv.toml", "--default-index", f"envdsl={route.url}"]
    environment = {variable("envdsl", "USERNAME"): route.credentials[0]}
    environment[variable("envdsl", "PASSWORD")] = route.credentials[1]
    settings = ""
    for number, source in enumerate(configuration.reachable):
        if source.directory is None and (pair := configuration.credentials(source)) is not None:
            name = f"envdsl-{number}"
            settings += f"[[index]]\nname = {json.dumps(name)}\nurl = {json.dumps(source.url)}\nexplicit = true\n"
            environment[variable(name, "USERNAME")], environment[variable(name, "PASSWORD")] = pair
    (directory / "uv.toml").write_text(settings, encoding="utf-8")
    for name in ("NO_PROXY", "no_proxy"):
        others = configuration.environment.get(name)
        environment[name] = f"{others},{route.host}" if others else route.host
    return arguments, environment


def _with_userinfo(url: str, pair: tuple[str, str] | None) -> str:
    if pair is None:
        return url
    return url.replace("://", f"://{quote(pair[0], safe='')}:{quote(pair[1], safe='')}@", 1)


@contextmanager
def _inputs(question: Question) -> Iterator[Path]:
    """A directory with the requirement files of ``question``, which only its user can enter."""
    with tempfile.TemporaryDirectory(prefix="envdsl-lock-") as name:
        directory = Path(name)
        _write(directory / "requirements.in", question.requirements)
        _write(directory / "constraints.txt", question.constraints)
        _write(directory / "overrides.txt", question.overrides)
        _write(directory / "excludes.txt", question.excludes)
        yield directory


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _preferences(pins: Mapping[str, str]) -> str:
    """An existing output for uv, whose pins it keeps where they fit."""
    blocks = "".join(f'\n[[packages]]\nname = "{name}"\nversion = "{version}"\n' for name, version in pins.items())
    return f'lock-version = "1.0"\ncreated-by = "envdsl"\n{blocks}'


def _too_old(message: str) -> EnvdslError:
    done = subprocess.run([str(find_uv()), "--version"], capture_output=True, text=True, check=False)
    wanted = ".".join(map(str, OLDEST_UV))
    return EnvdslError.of(
        "lock-uv-too-old",
        f"{done.stdout.strip() or 'uv'} does not know an option that envdsl needs ({wanted} does)",
        hint=f"pip install --upgrade 'uv>={wanted}' in the environment of envdsl",
        exit_status=ExitStatus.ENVIRONMENT,
        details={"uv": message.strip()},
    )
