"""Exporting a sealed run: verified first, then written in the forms that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from learngraph_kernel.errors import BadInput, ExitCode, LearnGraphError
from learngraph_kernel.runs.bundle import write_bundle
from learngraph_kernel.runs.folder import RunParts, refuse_occupied, replace_file, write_folder
from learngraph_kernel.runs.records import REPORT_HTML
from learngraph_kernel.runs.targets import completed, opened
from learngraph_kernel.runs.verify import verify_parts
from learngraph_kernel.store.errors import storage_full
from learngraph_kernel.store.home import Home


class NoReport(BadInput):
    """The run has no report to write."""

    code = "no_report"


class NotAsSealed(LearnGraphError):
    """The run is not what was sealed, so it isn't exported."""

    code = "not_as_sealed"
    exit_code: ClassVar[ExitCode] = ExitCode.MISMATCH


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where to write which form; None leaves it out."""

    folder: Path | None = None
    html: Path | None = None
    bundle: Path | None = None
    crate: Path | None = None

    def chosen(self) -> dict[str, Path]:
        """Form → path, of those that were asked for."""
        forms = {"folder": self.folder, "html": self.html, "bundle": self.bundle, "crate": self.crate}
        return {form: path for form, path in forms.items() if path is not None}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the run's id, and form → path."""

    run: str
    paths: Mapping[str, Path]


def export(target: str, destinations: Destinations, *, home: Home) -> Exported:
    """Writes a sealed run.

    Args:
        target: a run's id, an exported folder or a bundle.
        destinations: what to write where; parent folders must exist.
        home: where the store is.

    Raises:
        NotAsSealed: it does not verify; nothing is written.
        NoReport, FolderInTheWay, BundleTooLarge, BadInput: it can't be written like that.
        StorageFull: there is no room; no partial file is left.
        Unavailable: RO-Crate needs the package `rocrate`.
    """
    chosen = destinations.chosen()
    with opened(target, home=home) as (parts, more):
        _check_places(parts, chosen)
        verification = completed(verify_parts(parts), more)
        if not verification.ok:
            first = verification.findings[0]
            raise NotAsSealed(
                f"the run is not what was sealed ({len(verification.findings)} findings, first: {first.what})",
                where=target,
                remedy=f"see them all with: learngraph verify {target}",
                details={"findings": [finding.as_json() for finding in verification.findings]},
            )
        for form, path in chosen.items():
            try:
                _write(form, parts, path)
            except OSError as error:
                raise _unwritable(error, path) from error
    return Exported(str(verification.run_id), chosen)


def _check_places(parts: RunParts, chosen: Mapping[str, Path]) -> None:
    for form, path in chosen.items():
        if not path.absolute().parent.is_dir():
            raise BadInput("no such folder", where=str(path.absolute().parent), remedy="make it first")
        if form in ("folder", "crate"):
            refuse_occupied(path)
    if "html" in chosen and REPORT_HTML not in parts.files:
        raise NoReport("the run has no report", where=parts.where, remedy="export the folder: --to DIR")


def _unwritable(error: OSError, path: Path) -> LearnGraphError:
    return storage_full(error, path) or BadInput(
        f"cannot be written ({error.strerror})", where=str(path), remedy="check that the folder may be written"
    )


def _write(form: str, parts: RunParts, path: Path) -> None:
    if form == "folder":
        write_folder(parts, path)
    elif form == "html":
        replace_file(path, [parts.read(REPORT_HTML)])
    elif form == "bundle":
        write_bundle(parts, path)
    else:
        from learngraph_kernel.runs.crate import write_crate

        write_crate(parts, path)
