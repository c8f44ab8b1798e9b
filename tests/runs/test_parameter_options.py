"""papermill's parameter options."""

from __future__ import annotations

import base64

import pytest

from learngraph_kernel.runs.parameter_options import collect
from learngraph_kernel.runs.parameter_text import RawText
from learngraph_kernel.runs.parameters import ParameterError


def test_later_kinds_of_options_win_as_in_papermill(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("a: file\nb: file\n")
    found = collect(
        base64_yaml=[base64.b64encode(b"{a: base64, e: base64}").decode()],
        files=[file],
        yaml_texts=["b: yaml\nc: yaml\nd: yaml"],
        pairs=[("c", "7"), ("d", "07")],
        raw_pairs=[("d", "07")],
    )
    assert found == {"a": "file", "b": "yaml", "c": RawText("7"), "d": "07", "e": "base64"}


def test_yaml_values_keep_their_types_and_dates_stay_text():
    assert collect(yaml_texts=["{n: 1, f: 1.5, t: true, z: null, day: 2013-02-11, l: [1, 2]}"]) == {
        "n": 1, "f": 1.5, "t": True, "z": None, "day": "2013-02-11", "l": [1, 2],
    }  # fmt: skip


def test_empty_yaml_gives_nothing():
    assert collect(yaml_texts=[""]) == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"yaml_texts": ["- 1"]}, "-y number 1: the YAML is not a mapping"),
        ({"yaml_texts": ["a: 1", "{"]}, "-y number 2: not valid YAML"),
        ({"yaml_texts": ["1: x"]}, "not a mapping"),
        ({"yaml_texts": ["!!python/object/apply:os.system [id]"]}, "not valid YAML"),
        ({"base64_yaml": ["%%"]}, "-b number 1: not base64"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(options, words):
    with pytest.raises(ParameterError) as caught:
        collect(**options)
    assert words in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ParameterError, match=r"nowhere\.yaml"):
        collect(files=[tmp_path / "nowhere.yaml"])
