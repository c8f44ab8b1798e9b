"""The checks, in the order they are shown: the installation, what is stored, the workspace, what is optional."""

from __future__ import annotations

from learngraph_kernel.doctor import installation, storage, workspace
from learngraph_kernel.doctor.report import Check

CHECKS: tuple[tuple[str, Check], ...] = (
    ("python", installation.python),
    ("packages", installation.packages),
    ("kernel", installation.kernel),
    ("papermill engine", installation.papermill_engine),
    ("home", storage.home),
    ("database", storage.database),
    ("signing key", storage.signing_key),
    ("workspace", workspace.workspace),
    ("sources", workspace.sources),
    ("metric cards", workspace.metric_cards),
    ("models", workspace.models),
    ("optional packages", installation.optional_packages),
    ("litellm", installation.litellm),
    ("chromium", installation.chromium),
    ("docker sandbox", installation.sandbox),
)
