"""Semantic versions."""

from __future__ import annotations

import pytest

from learngraph_kernel.versions import is_version, precedence


@pytest.mark.parametrize("text", ["0.0.0", "1.2.3", "10.20.30", "1.0.0-rc.1", "1.0.0-0a", "1.0.0+build.5", "1.0.0-a+b"])
def test_a_version(text):
    assert is_version(text)


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "01.0.0", "1.0.0.0", "v1.0.0", "1.0.0-", "1.0.0-01", "1.0.0\n", "1.0.0-" + "a" * 40]
)
def test_no_version(text):
    assert not is_version(text)


def test_versions_sort_as_the_standard_says():
    order = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.9.0",
        "1.10.0",
    ]
    jumbled = order[::2] + order[1::2]
    assert sorted(jumbled, key=precedence) == order
