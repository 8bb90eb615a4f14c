"""The shared vocabulary: digests, names, spans, canonical form."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.model.canonical import canonical_json
from envdsl.model.digest import STORE_HASH_LENGTH, nix_base32, store_hash
from envdsl.model.names import LayerId, LayerKind, Platform, PythonVersion
from envdsl.model.span import Source, Span

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_base32_is_nix_base32() -> None:
    # `nix-hash --type sha256 --to-base32` of the empty input's sha256
    digest = hashlib.sha256(b"").digest()
    assert nix_base32(digest) == "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"


def test_store_hash_is_32_characters_of_the_alphabet() -> None:
    text = store_hash("ab" * 32)
    assert len(text) == STORE_HASH_LENGTH
    assert set(text) <= set("0123456789abcdfghijklmnpqrsvwxyz")


@given(st.dictionaries(st.text(), json_values))
def test_canonical_form_does_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert canonical_json(value) == canonical_json(backwards)


@pytest.mark.parametrize("value", [1.0, {"a": [1.5]}, {1: "a"}, {"a": object()}, b"bytes"])
def test_canonical_form_refuses_what_two_implementations_could_spell_differently(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize("text", ["3", "3.012", "3.12.1", "2.7", "3.x", " 3.12", "3.100"])
def test_a_python_version_is_a_feature_release(text: str) -> None:
    with pytest.raises(ValueError, match="feature release"):
        PythonVersion.parse(text)


def test_python_versions_order_by_number() -> None:
    assert PythonVersion.parse("3.9") < PythonVersion.parse("3.10")
    assert PythonVersion.parse("3.12").tag == "cp312"


@pytest.mark.parametrize("text", ["manylinux_2_28_x86_64", "musllinux_1_2_aarch64"])
def test_platforms_survive_a_round_trip(text: str) -> None:
    assert str(Platform.parse(text)) == text


@pytest.mark.parametrize("text", ["win_amd64", "manylinux2014_x86_64", "manylinux_2_28_mips", "linux_x86_64"])
def test_platforms_are_versioned_linux_tags_of_known_machines(text: str) -> None:
    with pytest.raises(ValueError, match="platform"):
        Platform.parse(text)


def test_layer_ids_survive_a_round_trip() -> None:
    layer = LayerId.of_key(LayerKind.X, "0f" * 32)
    assert LayerId.parse(str(layer)) == layer
    with pytest.raises(ValueError, match="layer id"):
        LayerId.parse("base-../../etc")


@given(st.text(alphabet="ab\n\r é", max_size=60), st.data())
def test_positions_count_lines_and_columns_from_one(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset]
    span = Span(Source("f", text), offset, offset)
    assert (span.line, span.column) == (before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
    assert text.split("\n")[span.line - 1].rstrip("\r") == span.source.line(span.line)
