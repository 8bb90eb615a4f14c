"""``envdsl.toml`` is read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envdsl.config import IndexSetting, ServiceSetting, WebhookSetting, find_root, load
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import PythonVersion


def _load(root: Path, text: str, **options: object) -> Any:
    (root / "envdsl.toml").write_text(text)
    return load(root, environment={}, **options)  # type: ignore[arg-type]


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    config = load(tmp_path, environment={})
    assert config.store == tmp_path / "store"
    assert config.layers == ("layers.d/*.layer",)
    assert config.lock_path("office") == tmp_path / "layers.d" / "pylock.office.toml"


def test_the_option_goes_before_the_variable_which_goes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "envdsl.toml").write_text('store = "a"\n')
    environment = {"ENVDSL_STORE": "/b"}
    assert load(tmp_path, environment={}).store == tmp_path / "a"
    assert load(tmp_path, environment=environment).store == Path("/b")
    assert load(tmp_path, store=Path("/c"), environment=environment).store == Path("/c")


def test_all_settings_are_read(tmp_path: Path) -> None:
    digest = "0" * 64
    (tmp_path / "envdsl.toml").write_text(
        'default-base = "office"\nplatforms = ["manylinux_2_28_aarch64"]\n'
        "[lock]\nurls = true\n"
        '[[index]]\nname = "internal"\nurl = "https://wheels.example/simple"\ndefault = true\n'
        '[[index]]\nname = "flat"\nurl = "wheels"\nformat = "flat"\n'
        f'[python]\nmirror = "https://m.example"\n[python.archive."3.12"]\npath = "p.tar.gz"\nsha256 = "{digest}"\n'
    )
    config = load(tmp_path, environment={})
    assert config.default_base == "office"
    assert [str(platform) for platform in config.platforms] == ["manylinux_2_28_aarch64"]
    assert config.urls
    assert config.indexes == (
        IndexSetting("internal", "https://wheels.example/simple", default=True),
        IndexSetting("flat", (tmp_path / "wheels").as_uri(), format="flat"),
    )
    assert config.python_mirror == "https://m.example"
    assert config.python_archives[PythonVersion(12)].path == tmp_path / "p.tar.gz"


def test_the_service_is_configured_and_a_relative_database_stands_in_the_project(tmp_path: Path) -> None:
    """Issue 4.3: database, administrators, expiry and webhook are settings of the project."""
    config = _load(
        tmp_path,
        '[service]\ndatabase = "sqlite:///var/state.db"\nadministrators = ["alice"]\ncatalog = "policy.toml"\n'
        'vulnerabilities = "osv.zip"\n[service.requests]\nexpire = "12 hours"\n'
        '[service.webhook]\nurl = "http://127.0.0.1:8000/hook"\nsecret-file = "secret"\n',
    )
    assert config.database == f"sqlite:///{tmp_path}/var/state.db"
    assert config.catalog == tmp_path / "policy.toml"
    assert config.service == ServiceSetting(
        config.database,
        ("alice",),
        "policy.toml",
        tmp_path / "osv.zip",
        WebhookSetting("http://127.0.0.1:8000/hook", tmp_path / "secret"),
        12 * 3600,
    )


def test_without_settings_the_database_stands_in_the_store_and_the_variable_goes_first(tmp_path: Path) -> None:
    """Issue 4.4: SQLite beside the store by default, PostgreSQL by URL."""
    assert load(tmp_path, environment={}).database == f"sqlite:///{tmp_path}/store/state.db"
    url = "postgresql+psycopg://db.example/envdsl"
    (tmp_path / "envdsl.toml").write_text('[service]\ndatabase = "sqlite:///other.db"\n')
    assert load(tmp_path, environment={"ENVDSL_DATABASE": url}).database == url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('stroe = "x"', "unknown key `stroe`"),
        ("store = 1", "`store` in envdsl.toml must be a string"),
        ("layers = [1]", "must be a list of strings"),
        ('locks = "../elsewhere"', "inside the project"),
        ('platforms = ["win_amd64"]', "not a Linux platform tag"),
        ("[lock]\nurls = 1", "`lock.urls` in envdsl.toml must be true or false"),
        ('[[index]]\nname = "a"', "`index.url` is missing"),
        ('[[index]]\nname = "a"\nurl = "b"\nformat = "rpm"', "must be one of simple, flat"),
        ('[index]\nname = "a"', r"array of tables"),
        ('[python.archive."three"]\npath = "a"', "not a Python feature release"),
        ('[python.archive."3.12"]\npath = "a"\nsha256 = "b"', "must be a sha256"),
        ("store = ", "not valid TOML"),
        ("[service]\ndatabse = 'sqlite:///x'", "unknown key `service.databse`"),
        ('[service]\ndatabase = "mysql://x"', "must be a URL that begins with sqlite:"),
        ('[service.requests]\nexpire = "soon"', "must be a number and a unit"),
        ('[service.webhook]\nurl = "http://chat.example"\nsecret-file = "s"', "must be an https URL"),
        ('[service.webhook]\nurl = "https://chat.example"', "`service.webhook.secret-file` is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(EnvdslError) as caught:
        _load(tmp_path, text)
    assert said in str(caught.value)
    assert caught.value.code == "config-invalid"
    assert caught.value.exit_status == ExitStatus.USAGE


def test_an_unknown_key_gets_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(EnvdslError) as caught:
        _load(tmp_path, 'stroe = "x"')
    assert caught.value.diagnostics[0].hint == "did you mean `store`?"


def test_the_root_is_the_nearest_directory_upwards_with_layers(tmp_path: Path) -> None:
    (tmp_path / "layers.d").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_root(tmp_path / "a" / "b") == tmp_path
    (tmp_path / "a" / "envdsl.toml").touch()
    assert find_root(tmp_path / "a" / "b") == tmp_path / "a"
