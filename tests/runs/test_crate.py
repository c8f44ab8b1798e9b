"""The RO-Crate: complete, the same each time, and accepted by the profile's own validator, offline."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.errors import Unavailable
from learngraph_kernel.runs.crate import NoWorkflow, describe, write_crate
from learngraph_kernel.runs.folder import FolderInTheWay, RunParts, parts_of_folder
from learngraph_kernel.runs.verify import verify_parts
from tests.runs.sample_run import RUN

pytest.importorskip("rocrate")


@pytest.fixture
def crate(sealed_parts: RunParts, tmp_path: Path) -> Path:
    write_crate(sealed_parts, tmp_path / "crate")
    return tmp_path / "crate"


def entities(crate: Path) -> dict[str, dict[str, Any]]:
    graph = json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"]
    return {entity["@id"]: entity for entity in graph}


def test_the_sealed_folder_lies_in_the_crate_and_verifies(crate: Path) -> None:
    assert verify_parts(parts_of_folder(crate / "run")).ok


def test_every_file_is_described(crate: Path) -> None:
    files = {path.relative_to(crate).as_posix() for path in (crate / "run").rglob("*") if path.is_file()}
    parts = {part["@id"] for part in entities(crate)["./"]["hasPart"]}
    assert parts == files


def test_the_notebook_is_the_workflow_and_the_run_the_action(crate: Path) -> None:
    found = entities(crate)
    assert found["./"]["mainEntity"] == {"@id": "run/notebook.ipynb"}
    assert "ComputationalWorkflow" in found["run/notebook.ipynb"]["@type"]
    action = found[f"#{RUN}"]
    assert action["@type"] == "CreateAction"
    assert action["instrument"] == {"@id": "run/notebook.ipynb"}
    assert {"@id": "#value-week"} in action["object"]
    assert {"@id": "run/result.json"} in action["result"]
    assert found["#value-week"]["value"] == 7


def test_the_same_run_gives_the_same_crate(sealed_parts: RunParts) -> None:
    assert describe(sealed_parts) == describe(sealed_parts)


def test_an_occupied_folder_is_refused(sealed_parts: RunParts, crate: Path) -> None:
    with pytest.raises(FolderInTheWay):
        write_crate(sealed_parts, crate)


def test_a_run_without_a_notebook_is_refused_with_the_way_out(sealed_parts: RunParts) -> None:
    files = {name: opener for name, opener in sealed_parts.files.items() if name != "notebook.ipynb"}
    with pytest.raises(NoWorkflow, match="--to DIR"):
        describe(RunParts("r", files))


def test_without_the_package_the_remedy_is_named(sealed_parts: RunParts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rocrate.rocrate", None)
    with pytest.raises(Unavailable, match="pip install"):
        describe(sealed_parts)


def test_the_workflow_run_profile_accepts_the_crate(
    crate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """roc-validator wants one document from the network, the JSON-LD context; `rocrate` carries a copy.

    The copy is of RO-Crate 1.3, which moved the Bioschemas types; 1.1 has them where the profiles look.
    """
    services = pytest.importorskip("rocrate_validator.services")
    import requests
    from rocrate_validator import models
    from rocrate_validator.utils.http import HttpRequester

    context = resources.files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()

    def get(_: object, url: str, **__: object) -> requests.Response:
        assert url == "https://w3id.org/ro/crate/1.1/context"
        response = requests.Response()
        response.status_code = 200
        response.headers["Content-Type"] = "application/ld+json"
        response._content = context.replace(b"https://bioschemas.org/terms/", b"https://bioschemas.org/")
        return response

    monkeypatch.setattr(HttpRequester, "get", get, raising=False)
    settings = models.ValidationSettings(
        rocrate_uri=str(crate),
        profile_identifier="workflow-run-crate-0.5",
        requirement_severity=models.Severity.REQUIRED,
        cache_path=tmp_path / "cache",
        skip_availability_check=True,
    )
    result = services.validate(settings)
    assert [issue.message for issue in result.get_issues()] == []
    assert result.passed()
