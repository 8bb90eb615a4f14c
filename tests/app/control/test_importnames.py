"""What can be imported of a distribution."""

from __future__ import annotations

import pytest

from envdsl.app.control.importnames import import_names


@pytest.mark.parametrize(
    ("name", "paths", "names"),
    [
        ("scikit-learn", ["sklearn/__init__.py", "sklearn/svm/__init__.py"], ("sklearn",)),
        ("pillow", ["PIL/__init__.py", "PIL/Image.py", "pillow.libs/libjpeg.so.62"], ("PIL",)),
        ("protobuf", ["google/protobuf/__init__.py", "google/_upb/_message.abi3.so"], ("google.protobuf",)),
        ("six", ["six.py", "six-1.16.0.dist-info/METADATA", "__pycache__/six.cpython-312.pyc"], ("six",)),
        ("pyyaml", ["yaml/__init__.py", "_yaml/__init__.py"], ("yaml",)),
        ("lxml", ["lxml/__init__.py", "lxml/etree.cpython-312-x86_64-linux-gnu.so"], ("lxml",)),
        ("ujson", ["ujson.cpython-312-x86_64-linux-gnu.so"], ("ujson",)),
        ("setuptools", ["pkg_resources/__init__.py", "setuptools/__init__.py"], ("setuptools", "pkg_resources")),
        ("argon2-cffi-bindings", ["_argon2_cffi_bindings/__init__.py"], ()),
        ("zope.interface", ["zope/interface/__init__.py"], ("zope.interface",)),
        ("google-cloud-storage", ["google/cloud/storage/__init__.py"], ("google.cloud.storage",)),
        ("ns", ["ns/plugin.py"], ("ns.plugin",)),
        ("careless", ["careless/__init__.py", "tests/test_it.py", "docs/conf.py"], ("careless",)),
        ("tests", ["tests/__init__.py"], ("tests",)),
        ("crowded", [f"crowd/m{number}.py" for number in range(20)], ("crowd",)),
        ("scripts-only", ["../../../bin/tool"], ()),
        ("not-importable", ["my-dir/thing.py", "data/x.json"], ()),
    ],
)
def test_import_names_are_what_the_files_say(name: str, paths: list[str], names: tuple[str, ...]) -> None:
    """Issue 4.6: import names, not only distribution names."""
    assert import_names(paths, name=name) == names
