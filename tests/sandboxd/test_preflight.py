"""Versions and weaknesses: upstream's numbers, Debian's backports, and what cannot be known."""

from __future__ import annotations

import itertools
import subprocess
from typing import Any

import pytest

from learngraph_kernel.sandboxd.image.docker_command import Docker
from learngraph_kernel.sandboxd.preflight import WeakEngine, checks, engine_findings, os_release, refuse_weak
from learngraph_kernel.sandboxd.versions import debian_key, upstream_key
from learngraph_kernel.sandboxd.weaknesses import WEAKNESSES
from tests.sandbox.conftest import Engine

DEBIAN_12 = ("debian", "12")
RUNC_2025 = {"CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"}
BOOKWORM = {
    "runc": "1.1.5+ds1-1+deb12u1",
    "containerd": "1.6.20~ds1-1+deb12u3",
    "docker.io": "20.10.24+dfsg1-1+deb12u1+b6",
}


def engine(runc: str = "1.4.1", docker: str = "29.8.0", containerd: str = "2.2.1") -> dict[str, Any]:
    versions = {"Engine": docker, "containerd": containerd, "runc": runc, "docker-init": "0.19.0"}
    return {"Components": [{"Name": name, "Version": version} for name, version in versions.items()]}


def found(version: dict[str, Any], packages: dict[str, str], release: tuple[str, str] = DEBIAN_12) -> dict[str, str]:
    return {finding.weakness.id: finding.state for finding in engine_findings(version, packages, release)}


ASCENDING = [
    ["1.0~rc1", "1.0", "1.0-1", "1.0-1+b1", "1.0-1+deb12u1", "1.0-2", "1.0+ds1-1", "1.0.1", "1.10", "1:0.5"],
    ["1.1.5+ds1-1", "1.1.5+ds1-1+deb12u1", "1.1.12+ds1-1"],
    ["20.10.24+dfsg1-1", "20.10.24+dfsg1-1+deb12u1", "20.10.24+dfsg1-1+deb12u1+b6", "26.1.5+dfsg1-9"],
    ["1.6.20~ds1-1+deb12u2", "1.6.20~ds1-1+deb12u3", "1.6.20-1", "1.6.24~ds1-1"],
]


@pytest.mark.parametrize(("lower", "higher"), [pair for row in ASCENDING for pair in itertools.pairwise(row)])
def test_debian_versions_are_ordered_as_dpkg_orders_them(lower: str, higher: str) -> None:
    assert debian_key(lower) < debian_key(higher)
    try:
        done = subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher], check=False)
    except FileNotFoundError:
        pytest.skip("NO DPKG: the order was not compared with dpkg's own")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1.0.0-rc7", "1.0.0-rc95"), ("1.0.0-rc95", "1.0.0"), ("v1.2.8", "1.3.0"), ("1.4.0-rc.3", "1.4.0"), ("9.9", "10")],
)
def test_upstream_versions_are_ordered_with_their_pre_releases(lower: str, higher: str) -> None:
    assert upstream_key(lower) < upstream_key(higher)


def test_a_current_engine_of_dockers_own_packages_is_free_of_findings() -> None:
    assert found(engine(), {}) == {}


@pytest.mark.parametrize(
    ("runc", "vulnerable"),
    [
        ("1.1.11", {"CVE-2024-21626", *RUNC_2025}),
        ("1.1.12", RUNC_2025),
        ("1.2.7", RUNC_2025),
        ("1.2.8", set()),
        ("1.3.2", RUNC_2025),
        ("1.3.3", set()),
        ("1.4.0-rc.2", RUNC_2025),
        ("1.4.0-rc.3", set()),
        ("1.5.0", set()),
    ],
)
def test_a_fix_counts_on_its_own_branch(runc: str, vulnerable: set[str]) -> None:
    assert set(found(engine(runc=runc), {})) == vulnerable


def test_debians_backport_is_told_from_upstreams_number() -> None:
    """1.1.5 is below 1.1.12, and yet closed; what Debian did not close stays open."""
    old = engine(runc="1.1.5+ds1", docker="20.10.24+dfsg1", containerd="1.6.20~ds1")
    assert "CVE-2024-21626" not in found(old, BOOKWORM)
    assert found(old, {**BOOKWORM, "runc": "1.1.5+ds1-1"})["CVE-2024-21626"] == "vulnerable"
    assert found(old, {})["CVE-2024-21626"] == "vulnerable"
    assert "CVE-2024-25621" not in found(old, BOOKWORM)
    assert set(found(old, BOOKWORM)) == {*RUNC_2025, "CVE-2026-41567", "CVE-2026-42306"}


def test_a_distribution_nobody_looked_at_is_unknown_and_not_safe() -> None:
    old = engine(runc="1.1.5")
    assert found(old, {"runc": "1.1.5-0ubuntu1"}, ("ubuntu", "24.04"))["CVE-2024-21626"] == "unknown"
    assert found(engine(), {"runc": "1.4.1-0ubuntu1"}, ("ubuntu", "26.04")) == {}


def test_an_engine_that_hides_its_runtime_is_unknown() -> None:
    assert found({"Components": []}, {})["CVE-2024-21626"] == "unknown"


def test_strict_refuses_a_way_out_of_our_containers_and_nothing_else() -> None:
    refuse_weak(engine_findings(engine(docker="28.5.2"), {}, DEBIAN_12))
    with pytest.raises(WeakEngine) as caught:
        refuse_weak(engine_findings(engine(runc="1.2.7"), {}, DEBIAN_12))
    assert set(caught.value.details["weaknesses"]) == RUNC_2025
    assert caught.value.remedy


def test_every_weakness_says_where_it_is_closed() -> None:
    assert len({weakness.id for weakness in WEAKNESSES}) == len(WEAKNESSES)
    assert [weakness.id for weakness in WEAKNESSES if not weakness.fixed or not weakness.summary] == []


def test_os_release_is_read(tmp_path: Any) -> None:
    path = tmp_path / "os-release"
    path.write_text('NAME="Debian"\nVERSION_ID="12"\nID=debian\n')
    assert os_release(path) == DEBIAN_12
    assert os_release(tmp_path / "none") == ("", "")


def test_no_engine_is_one_line_with_a_remedy() -> None:
    (line,) = checks(Docker("docker-that-is-not-here"))
    assert (line.name, line.state) == ("docker engine", "unavailable")
    assert "apt-get install docker.io" in (line.remedy or "")


def test_a_prebuilt_image_that_was_not_pulled_says_how(docker_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = f"registry.invalid/x@sha256:{'a' * 64}"
    monkeypatch.setenv("LEARNGRAPH_IMAGE", reference)
    line = checks(docker_engine.command)[-1]
    assert (line.state, line.remedy) == ("unavailable", f"docker pull {reference}")


def test_the_engine_of_this_machine_is_judged(docker_engine: Engine, sandbox_image: str) -> None:
    lines = {line.name: line for line in checks(docker_engine.command)}
    assert list(lines) == ["docker engine", "docker weaknesses", "sandbox image"]
    assert lines["docker engine"].state == "ok"
    assert (lines["sandbox image"].state, lines["sandbox image"].detail) == ("ok", sandbox_image)
