"""The workspace: its file, each source, the metric cards, each model. Nothing is sent to a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from learngraph_kernel.doctor.report import CheckResult, Surroundings, failed
from learngraph_kernel.errors import LearnGraphError, Unavailable

if TYPE_CHECKING:
    from learngraph_kernel.data.workspace import Workspace
    from learngraph_kernel.models.config import ModelConfig

NO_WORKSPACE_FILE = "no learngraph.toml from here upwards: no sources, no models"


def workspace(around: Surroundings) -> Iterator[CheckResult]:
    """The workspace file parses."""
    found = _workspace(around)
    if found.file is None:
        remedy = "learngraph source add NAME --kind duckdb --path FILE"
        yield CheckResult("workspace", "warning", NO_WORKSPACE_FILE, remedy)
    else:
        yield CheckResult("workspace", "ok", f"{found.file}: {len(found.sources)} sources")


def _workspace(around: Surroundings) -> Workspace:
    from learngraph_kernel.data.workspace import find_workspace

    return find_workspace(around.start)


def sources(around: Surroundings) -> Iterator[CheckResult]:
    """Each declared source opens and answers."""
    try:
        found = _workspace(around)
    except LearnGraphError:
        return  # the check `workspace` says so
    try:
        for name in found.sources:
            yield _source(found, name, around)
    finally:
        found.close()


def _source(found: Workspace, name: str, around: Surroundings) -> CheckResult:
    label = f"source {name}"
    try:
        opened = found.open_source(name, around.home)
        opened.test()
        return CheckResult(label, "ok", f"{opened.kind}, {len(opened.tables())} tables")
    except LearnGraphError as error:
        return failed(label, error)
    except Exception as error:  # noqa: BLE001  (an engine may raise anything; the other sources are still tested)
        remedy = f"learngraph source test {name}"
        return CheckResult(label, "failed", f"{type(error).__name__}: {error}", remedy)


def metric_cards(around: Surroundings) -> Iterator[CheckResult]:
    """The cards beside the workspace file load."""
    from learngraph_kernel.evidence.metrics.library import load_cards

    try:
        folder = _workspace(around).root / "metrics"
    except LearnGraphError:
        return  # the check `workspace` says so
    library = load_cards(folder)
    yield CheckResult("metric cards", "ok", f"{len(library.sets)} sets in {folder}")


def models(around: Surroundings) -> Iterator[CheckResult]:
    """Each declared model can be opened, and its library and key are there."""
    from learngraph_kernel.models.config import parse_models

    try:
        found = _workspace(around)
    except LearnGraphError:
        return  # the check `workspace` says so
    declared = parse_models(found.models, root=found.root, where=str(found.file))
    if not declared:
        remedy = 'add [models.default] with adapter = "scripted" or "litellm" to learngraph.toml'
        yield CheckResult("models", "unavailable", "no model is configured: lg.ask", remedy)
    for name, config in declared.items():
        yield _model(name, config, around)


def _model(name: str, config: ModelConfig, around: Surroundings) -> CheckResult:
    from learngraph_kernel.accounts.hosts import host_resolver
    from learngraph_kernel.models.config import open_model
    from learngraph_kernel.models.litellm_adapter import check_version

    label = f"model {name}"
    try:
        adapter = open_model(config, environ=around.environ)
        if config.adapter == "litellm":
            check_version()
        if config.api_key_env is not None and not around.environ.get(config.api_key_env):
            raise Unavailable(
                f"the environment variable {config.api_key_env} is not set",
                where=f"model {adapter.model}",
                remedy=f"export {config.api_key_env}=… before starting",
            )
        if config.base_url is not None:
            host_resolver(around.environ).resolve(config.base_url)
    except LearnGraphError as error:
        return failed(label, error)
    return CheckResult(label, "ok", f"{config.adapter}, {adapter.model}")
