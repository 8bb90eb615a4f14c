"""``envdsl.toml``: where a project's layers, locks and store are, and where its wheels come from.

``docs/configuration.md`` explains every key. All are optional::

    layers       = ["layers.d/*.layer"]   # globs of layer files
    locks        = "layers.d"             # the directory of the lock files
    store        = "store"                # the environment root
    default-base = "office"               # what `current` points at
    platforms    = ["manylinux_2_28_x86_64", "manylinux_2_28_aarch64"]   # of layers that declare none

    [lock]
    urls = false                          # true: locks name where each wheel was found

    [[index]]                             # in order; without any, what uv and pip are configured with
    name    = "internal"
    url     = "https://wheels.example/simple"     # or a directory
    default = true                        # replaces the public index
    format  = "simple"                    # or "flat": a directory or page of wheels
    packages = ["corp-*"]                 # names that are asked of this index and of no other
    explicit = false                      # true: only for these, and for layers that name it

    [python]
    mirror = "https://mirror.example/python-build-standalone"
    [python.archive."3.12"]
    path   = "vendor/cpython-3.12-install_only.tar.gz"
    sha256 = "…"

    [service]                             # asking for packages: docs/policy.md
    database        = "postgresql+psycopg://…"    # ENVDSL_DATABASE goes before; without: state.db in the store
    administrators  = ["alice"]           # who may decide everything, beside root and the store's owner
    catalog         = "layers.d/catalog.toml"
    vulnerabilities = "osv"               # a directory or zip of OSV records
    [service.requests]
    expire = "7 days"                     # what waits for a person longer than that
    [service.webhook]
    url         = "https://chat.example/hooks/7"  # told of requests that wait for a person
    secret-file = "webhook.secret"        # what deliveries are signed with

    [audit]                               # `envdsl audit`, beside service.vulnerabilities
    endpoint = "https://osv.example"      # an OSV API
    [[audit.ignore]]
    id      = "GHSA-…"                    # or an alias, such as the CVE
    reason  = "we never parse untrusted fonts"
    expires = 2027-01-31
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import is_sha256
from envdsl.model.names import DEFAULT_PLATFORMS, Platform, PythonVersion

FILE_NAME = "envdsl.toml"
LAYERS_DIRECTORY = "layers.d"
STORE_VARIABLE = "ENVDSL_STORE"
DATABASE_VARIABLE = "ENVDSL_DATABASE"
CATALOG = f"{LAYERS_DIRECTORY}/catalog.toml"
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class IndexSetting:
    """One ``[[index]]`` of ``envdsl.toml``."""

    name: str
    url: str
    default: bool = False
    format: str = "simple"
    explicit: bool = False
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchiveSetting:
    """A local interpreter archive, ``[python.archive."3.12"]``."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class WebhookSetting:
    """``[service.webhook]``: who is told of requests, and the file of the secret that deliveries are signed with."""

    url: str
    secret_file: Path


@dataclass(frozen=True, slots=True)
class ServiceSetting:
    """``[service]``: how packages are asked for.

    ``database`` is a URL, None for ``state.db`` in the store. ``vulnerabilities`` is a directory or a zip file of OSV
    records. A request that nobody decides within ``expire`` seconds ends.
    """

    database: str | None = None
    administrators: tuple[str, ...] = ()
    catalog: str = CATALOG
    vulnerabilities: Path | None = None
    webhook: WebhookSetting | None = None
    expire: int = 7 * 86400


@dataclass(frozen=True, slots=True)
class IgnoredVulnerability:
    """``[[audit.ignore]]``: a known vulnerability (its id or an alias) that does not count, why, and until when."""

    id: str
    reason: str
    expires: date


@dataclass(frozen=True, slots=True)
class AuditSetting:
    """``[audit]``: what ``envdsl audit`` asks beside ``service.vulnerabilities``, an OSV API."""

    endpoint: str | None = None
    ignore: tuple[IgnoredVulnerability, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """A project: its root directory, and the settings of its ``envdsl.toml`` (or the defaults)."""

    root: Path
    store: Path
    layers: tuple[str, ...] = (f"{LAYERS_DIRECTORY}/*.layer",)
    locks: str = LAYERS_DIRECTORY
    default_base: str | None = None
    platforms: tuple[Platform, ...] = DEFAULT_PLATFORMS
    urls: bool = False
    indexes: tuple[IndexSetting, ...] = ()
    python_mirror: str | None = None
    python_archives: Mapping[PythonVersion, ArchiveSetting] = field(default_factory=dict)
    service: ServiceSetting = ServiceSetting()
    audit: AuditSetting = AuditSetting()

    @property
    def database(self) -> str:
        """The URL of the control plane's database."""
        return self.service.database or f"sqlite:///{self.store}/state.db"

    @property
    def catalog(self) -> Path:
        return self.root / self.service.catalog

    @property
    def file(self) -> Path:
        return self.root / FILE_NAME

    def lock_path(self, layer: str) -> Path:
        return self.root / self.locks / f"pylock.{layer}.toml"


def find_root(start: Path) -> Path | None:
    """The nearest directory, from ``start`` upwards, that holds ``envdsl.toml`` or ``layers.d``."""
    for directory in (start, *start.parents):
        if (directory / FILE_NAME).is_file() or (directory / LAYERS_DIRECTORY).is_dir():
            return directory
    return None


def load(root: Path, *, store: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read ``root/envdsl.toml`` if it is there.

    ``store`` (of ``--store``) goes before ``ENVDSL_STORE``, which goes before the file's own setting;
    ``ENVDSL_DATABASE`` goes before ``service.database``.
    Raises :class:`EnvdslError` (``config-…``) for anything that is not as the module describes it.
    """
    file = root / FILE_NAME
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        data = {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _error(f"{FILE_NAME} is not valid TOML: {error}") from error
    if store is None and (chosen := environment.get(STORE_VARIABLE)):
        store = Path(chosen)
    table = _Table(data, "")
    settings: dict[str, Any] = {}
    table.read("layers", _strings, settings)
    table.read("locks", _inside(root), settings)
    table.read("default-base", _string, settings)
    table.read("platforms", _platforms, settings)
    declared_store = table.value("store", _string) or "store"
    lock = _Table(table.value("lock", _table) or {}, "lock.")
    lock.read("urls", _boolean, settings)
    lock.finish()
    settings["indexes"] = tuple(_index(_Table(item, "index."), root) for item in table.value("index", _tables) or ())
    python = _Table(table.value("python", _table) or {}, "python.")
    mirror = python.value("mirror", _string)
    archives = python.value("archive", _table) or {}
    settings["python_mirror"] = mirror
    settings["python_archives"] = {
        _python(version): _archive(_Table(_table(item), f"python.archive.{version}."), root)
        for version, item in archives.items()
    }
    python.finish()
    service = _Table(table.value("service", _table) or {}, "service.")
    settings["service"] = _service(service, root, environment.get(DATABASE_VARIABLE))
    settings["audit"] = _audit(_Table(table.value("audit", _table) or {}, "audit."))
    table.finish()
    return Config(root=root, store=(store or root / declared_store).absolute(), **settings)


class _Table:
    """A TOML table that knows which of its keys were asked for, so that others can be reported."""

    def __init__(self, data: Mapping[str, Any], prefix: str) -> None:
        self._data = data
        self._prefix = prefix
        self._known: list[str] = []

    def value(self, key: str, convert: Callable[[Any], Any]) -> Any:
        self._known.append(key)
        if key not in self._data:
            return None
        try:
            return convert(self._data[key])
        except ValueError as error:
            raise _error(f"`{self._prefix}{key}` in {FILE_NAME} {error}") from error

    def read(self, key: str, convert: Callable[[Any], Any], into: dict[str, Any]) -> None:
        value = self.value(key, convert)
        if value is not None:
            into[key.replace("-", "_")] = value

    def required(self, key: str, convert: Callable[[Any], Any]) -> Any:
        value = self.value(key, convert)
        if value is None:
            raise _error(f"`{self._prefix}{key}` is missing in {FILE_NAME}")
        return value

    def finish(self) -> None:
        for key in self._data:
            if key not in self._known:
                import difflib

                close = difflib.get_close_matches(key, self._known, 1)
                hint = f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(sorted(self._known))}"
                raise _error(f"unknown key `{self._prefix}{key}` in {FILE_NAME}", hint)


def _index(table: _Table, root: Path) -> IndexSetting:
    url = table.required("url", _string)
    if "://" not in url:
        url = (root / url).absolute().as_uri()
    setting = IndexSetting(
        name=table.required("name", _string),
        url=url,
        default=bool(table.value("default", _boolean)),
        format=table.value("format", _one_of("simple", "flat")) or "simple",
        explicit=bool(table.value("explicit", _boolean)),
        packages=table.value("packages", _name_patterns) or (),
    )
    table.finish()
    return setting


def _archive(table: _Table, root: Path) -> ArchiveSetting:
    setting = ArchiveSetting(root / table.required("path", _string), table.required("sha256", _sha256))
    table.finish()
    return setting


def _service(table: _Table, root: Path, database: str | None) -> ServiceSetting:
    settings: dict[str, Any] = {}
    table.read("database", _database(root), settings)
    if database:
        settings["database"] = database
    table.read("administrators", _strings, settings)
    table.read("catalog", _inside(root), settings)
    if (vulnerabilities := table.value("vulnerabilities", _string)) is not None:
        settings["vulnerabilities"] = root / vulnerabilities
    requests = _Table(table.value("requests", _table) or {}, "service.requests.")
    requests.read("expire", _duration, settings)
    requests.finish()
    if (webhook := table.value("webhook", _table)) is not None:
        settings["webhook"] = _webhook(_Table(webhook, "service.webhook."), root)
    table.finish()
    return ServiceSetting(**settings)


def _audit(table: _Table) -> AuditSetting:
    settings: dict[str, Any] = {}
    table.read("endpoint", _endpoint, settings)
    settings["ignore"] = tuple(_ignored(_Table(item, "audit.ignore.")) for item in table.value("ignore", _tables) or ())
    table.finish()
    return AuditSetting(**settings)


def _ignored(table: _Table) -> IgnoredVulnerability:
    setting = IgnoredVulnerability(
        table.required("id", _string), table.required("reason", _string), table.required("expires", _date)
    )
    table.finish()
    return setting


def _endpoint(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        raise ValueError("must be the URL of an OSV API")
    return value.rstrip("/")


def _date(value: Any) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError("must be a date without quotes: 2027-01-31")
    return value


def _webhook(table: _Table, root: Path) -> WebhookSetting:
    setting = WebhookSetting(
        table.required("url", _webhook_url), root / Path(table.required("secret-file", _string)).expanduser()
    )
    table.finish()
    return setting


def _python(text: str) -> PythonVersion:
    try:
        return PythonVersion.parse(text)
    except ValueError as error:
        raise _error(f"`python.archive` in {FILE_NAME}: {error}") from error


def _string(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a string that is not empty")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def _name_patterns(value: Any) -> tuple[str, ...]:
    patterns = _strings(value)
    for pattern in patterns:
        if not re.fullmatch(r"[A-Za-z0-9._*-]*[A-Za-z0-9*]", pattern):
            raise ValueError(f'has "{pattern}", which is no name of a package, nor a pattern of names such as "corp-*"')
    return patterns


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a table")
    return value


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("must be an array of tables ([[index]])")
    return value


def _sha256(value: Any) -> str:
    if not isinstance(value, str) or not is_sha256(value):
        raise ValueError("must be a sha256: 64 lower-case hexadecimal digits")
    return value


def _platforms(value: Any) -> tuple[Platform, ...]:
    return tuple(Platform.parse(item) for item in _strings(value))


def _database(root: Path) -> Callable[[Any], str]:
    """A path in an SQLite URL is relative to the project, not to whatever directory a command runs in."""

    def convert(value: Any) -> str:
        url = _string(value)
        scheme, separator, path = url.partition(":///")
        if not url.startswith(("sqlite:", "postgresql:", "postgresql+")):
            raise ValueError("must be a URL that begins with sqlite: or postgresql+psycopg:")
        if scheme == "sqlite" and separator and path and not path.startswith("/"):
            return f"sqlite:///{(root / path).absolute()}"
        return url

    return convert


def _webhook_url(value: Any) -> str:
    """What is delivered names packages and people: it goes through https, or stays on this machine."""
    from urllib.parse import urlsplit

    url = _string(value)
    parts = urlsplit(url)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
        raise ValueError("must be an https URL (http is for this machine alone)")
    return url


def _duration(value: Any) -> int:
    number, _, unit = _string(value).strip().partition(" ")
    seconds = _SECONDS.get(unit.strip().removesuffix("s"))
    if seconds is None or not number.isdecimal() or int(number) == 0:
        raise ValueError('must be a number and a unit: "90 minutes", "12 hours", "7 days", "2 weeks"')
    return int(number) * seconds


def _one_of(*choices: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return str(value)

    return convert


def _inside(root: Path) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        text = _string(value)
        if not (root / text).resolve().is_relative_to(root.resolve()):
            raise ValueError("must lie inside the project")
        return text

    return convert


def _error(message: str, hint: str | None = None) -> EnvdslError:
    return EnvdslError.of("config-invalid", message, hint=hint, exit_status=ExitStatus.USAGE)
