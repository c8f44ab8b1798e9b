"""A sealed run as an RO-Crate of the Workflow Run profile: the notebook is the workflow, the run the action.

RO-Crate 1.1 and Workflow Run Crate 0.5 (with the Process Run Crate and Workflow RO-Crate profiles it builds on). The
sealed folder lies unchanged under `run/`, so `learngraph verify CRATE/run` works; `ro-crate-metadata.json` beside it
describes it for repositories and other tools. Same run, same crate: nothing in it comes from the clock.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.errors import BadInput, Unavailable
from learngraph_kernel.runs.folder import RunParts, refuse_occupied, write_folder
from learngraph_kernel.runs.records import (
    AFTER_SEAL,
    ARTIFACTS,
    CONTENT,
    ENVELOPE,
    KEY,
    LEDGER,
    NOTEBOOK,
    REPORT,
    REPORT_HTML,
    RESULT,
)
from learngraph_kernel.runs.seal import Envelope

FOLDER = "run/"
METADATA = "ro-crate-metadata.json"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_RUN_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
_JUPYTER = {
    "@type": "ComputerLanguage",
    "name": "Jupyter Notebook",
    "url": {"@id": "https://jupyter.org/"},
    "identifier": {"@id": "https://nbformat.readthedocs.io/"},
}
_FILES: Mapping[str, tuple[str, str]] = {
    ENVELOPE: ("application/vnd.dsse+json", "Seal: an in-toto statement in a signed DSSE envelope"),
    LEDGER: ("application/jsonl", "Hash-chained events of the run"),
    AFTER_SEAL: ("application/jsonl", "Events added after the seal, outside it"),
    CONTENT: ("application/json", "Content document: what two equal runs have in common"),
    KEY: ("application/x-pem-file", "Public key of the signer (Ed25519)"),
    REPORT: ("application/json", "Report document with its citations"),
    REPORT_HTML: ("text/html", "Report for people"),
    RESULT: ("application/json", "Structured result"),
}
_OUTPUTS = (REPORT_HTML, REPORT, RESULT)
_STATUS = {True: "http://schema.org/CompletedActionStatus", False: "http://schema.org/FailedActionStatus"}


class NoWorkflow(BadInput):
    """The run has no notebook."""

    code = "no_workflow"


def write_crate(parts: RunParts, target: Path) -> None:
    """Writes the crate of a verified run; all of it appears at once, or nothing.

    Args:
        parts: the run's sealed files.
        target: a folder that doesn't exist yet, or an empty one.

    Raises:
        Unavailable: the package `rocrate` is not installed.
        NoWorkflow: the run kept no notebook.
        FolderInTheWay: there is something at `target`.
    """
    refuse_occupied(target)
    metadata = describe(parts)
    partial = target.with_name(f".{target.name}.{os.getpid()}.crate")
    try:
        partial.mkdir()
        write_folder(parts, partial / FOLDER.rstrip("/"))
        text = json.dumps(metadata, ensure_ascii=False, indent=2) + "\n"
        (partial / METADATA).write_text(text, encoding="utf-8")
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def describe(parts: RunParts) -> dict[str, Any]:
    """The crate's metadata as JSON-LD. Raises Unavailable, NoWorkflow."""
    if NOTEBOOK not in parts.files or CONTENT not in parts.files:
        raise NoWorkflow(
            "the run kept no executed notebook, so there is no workflow to describe",
            where=parts.where,
            remedy="export the folder instead: learngraph export RUN --to DIR",
        )
    try:
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise Unavailable(
            "RO-Crate export needs the package rocrate", where="--crate", remedy="pip install 'learngraph[crate]'"
        ) from error
    return _Describing(ROCrate(version="1.1"), parts).metadata()


class _Describing:
    """One description under way: `crate` collects the entities."""

    def __init__(self, crate: Any, parts: RunParts) -> None:
        self.crate = crate
        self.parts = parts
        self.seal: Mapping[str, Any] = Envelope.from_bytes(parts.read(ENVELOPE)).statement["predicate"]
        self.content: Mapping[str, Any] = json.loads(parts.read(CONTENT))
        self.files: dict[str, Any] = {}

    def metadata(self) -> dict[str, Any]:
        """The whole description."""
        self._root()
        for name in sorted(self.parts.files):
            if name != NOTEBOOK:
                self._file(name)
        workflow = self._workflow()
        self._action(workflow, self._inputs(workflow), self._outputs(workflow))
        body: dict[str, Any] = self.crate.metadata.generate()
        return body

    def _entity(self, identifier: str, properties: Mapping[str, Any]) -> Any:
        from rocrate.model.contextentity import ContextEntity

        return self.crate.add(ContextEntity(self.crate, identifier, properties=dict(properties)))

    def _root(self) -> None:
        run = self.seal["run"]
        self.crate.name = f"LearnGraph run {run}"
        self.crate.description = (
            f"A sealed run of a notebook (status {self.seal['status']}, tier {self.seal['tier']}). "
            "The folder run/ can be verified offline: learngraph verify run"
        )
        self.crate.datePublished = self.seal["finished"]
        self.crate.license = "None stated: ask the person who ran it"
        profiles = [
            self._entity(identifier, {"@type": "CreativeWork", "name": name, "version": version})
            for identifier, (name, version) in _PROFILES.items()
        ]
        self.crate.root_dataset["conformsTo"] = profiles
        # Workflow RO-Crate asks for its profile on the descriptor as well.
        descriptor = ["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
        self.crate.metadata["conformsTo"] = [{"@id": identifier} for identifier in descriptor]

    def _file(self, name: str) -> None:
        kind, description = _FILES.get(name, ("application/octet-stream", "Artifact that the ledger names"))
        properties = {"name": name.removeprefix(ARTIFACTS), "encodingFormat": kind, "description": description}
        self.files[name] = self.crate.add_file(dest_path=FOLDER + name, properties=properties)

    def _workflow(self) -> Any:
        from rocrate.model.computationalworkflow import ComputationalWorkflow

        properties = {
            "name": "Notebook",
            "description": "The notebook as executed",
            "encodingFormat": "application/x-ipynb+json",
            "conformsTo": {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"},
            "version": self._version(),
        }
        workflow = self.crate.add(ComputationalWorkflow(self.crate, dest_path=FOLDER + NOTEBOOK, properties=properties))
        workflow["programmingLanguage"] = self._entity("https://jupyter.org/#notebook", _JUPYTER)
        self.crate.mainEntity = workflow
        return workflow

    def _version(self) -> str:
        """The workflow's declared version, or the content hash: the two things that name what was run."""
        notebook = json.loads(self.parts.read(NOTEBOOK))
        declared = notebook.get("metadata", {}).get("learngraph", {}).get("version")
        return str(declared or self.seal["content"])

    def _inputs(self, workflow: Any) -> list[Any]:
        """Parameters, as values of formal parameters, and the snapshots that the notebook read."""
        objects: list[Any] = []
        parameters = []
        for name, value in self.content["parameters"].items():
            kind = _schema_type(value)
            parameter = self.crate.add_formal_parameter(name, kind, identifier=f"#input-{name}", valueRequired=True)
            text = value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
            given = {"@type": "PropertyValue", "name": name, "value": text, "exampleOfWork": {"@id": parameter.id}}
            objects.append(self._entity(f"#value-{name}", given))
            parameter["workExample"] = objects[-1]
            parameters.append(parameter)
        _set(workflow, "input", parameters)
        for item in self.content["inputs"]:
            file = self.files.get(ARTIFACTS + item["artifact"])
            if file is not None and file not in objects:
                file["name"] = f"Snapshot {item['ref']}"
                file["encodingFormat"] = "application/vnd.apache.arrow.file"
                file["description"] = f"Result of a query against {item['source']}: {item['sql']}"
                objects.append(file)
        return objects

    def _outputs(self, workflow: Any) -> list[Any]:
        results = [self.files[name] for name in _OUTPUTS if name in self.files]
        parameters = []
        for file in results:
            name = file["name"]
            parameter = self.crate.add_formal_parameter(name, "File", identifier=f"#output-{name}")
            parameter["workExample"] = file
            file["exampleOfWork"] = parameter
            parameters.append(parameter)
        _set(workflow, "output", parameters)
        return results

    def _action(self, workflow: Any, objects: list[Any], results: list[Any]) -> None:
        kind, _, name = str(self.seal["actor"]).partition(":")
        agent = self._entity(f"#{kind}-{name}", {"@type": "Person", "name": name or kind})
        completed = self.seal["status"] != "failed" and self.seal["status"] != "cancelled"
        properties: dict[str, Any] = {
            "@type": "CreateAction",
            "name": f"Run {self.seal['run']}",
            "description": f"Isolation: {self.seal['isolation']}; tier: {self.seal['tier']}",
            "startTime": _iso(self.seal["started"]),
            "endTime": _iso(self.seal["finished"]),
            "actionStatus": _STATUS[completed],
            "agent": {"@id": agent.id},
        }
        if not completed:
            properties["error"] = f"the run ended with status {self.seal['status']}"
        action = self.crate.add_action(workflow, f"#{self.seal['run']}", properties=properties)
        _set(action, "object", objects)
        _set(action, "result", results)
        if self.seal["image"]:
            self.crate.metadata.extra_contexts.append(_RUN_TERMS)
            image = {"@type": "ContainerImage", "name": str(self.seal["image"])}
            action["containerImage"] = self._entity("#image", image)
        self.crate.root_dataset["mentions"] = action
        self.crate.root_dataset["author"] = agent


def _set(entity: Any, key: str, values: list[Any]) -> None:
    """RO-Crate writes a single value bare and none not at all."""
    if values:
        entity[key] = values if len(values) > 1 else values[0]


def _iso(moment: str) -> str:
    """A ledger time as the profiles want it: milliseconds and a numeric offset."""
    return re.sub(r"(\.\d{3})\d*Z$", r"\1+00:00", moment)


def _schema_type(value: Any) -> str:
    """A schema.org DataType for a parameter's value."""
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int):
        return "Integer"
    if isinstance(value, float):
        return "Float"
    return "Text" if isinstance(value, str) else "PropertyValue"
