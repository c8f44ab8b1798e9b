"""What `lg` calls return: light handles on evidence that lives on the runtime's side.

A handle knows its reference (`Q1`, `m:flights`, …), shows itself with the mime bundle the runtime made, and fetches
data only when asked to. Numbers taken out of a handle by code are the notebook's own from then on; citing the
reference is what keeps them openable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from learngraph_kernel.canonical import decode_value
from learngraph_kernel.errors import Unavailable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Shown:
    """Something with a mime bundle made by the runtime: HTML for people, stable plain text for diffs."""

    def __init__(self, bundle: Mapping[str, Any]) -> None:
        self._bundle = dict(bundle)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return dict(self._bundle)

    def __repr__(self) -> str:
        return str(self._bundle.get("text/plain", f"<{type(self).__name__}>"))


class Snapshot(Shown):
    """The stored result of a query.

    Attributes:
        ref: what to cite, e.g. `Q1`.
        columns: column names in order.
        row_count: rows stored.
        truncated: `rows`, `bytes` or None; a truncated snapshot cannot feed a metric.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(answer["bundle"])
        info = answer["snapshot"]
        self.ref: str = info["ref"]
        self.columns: list[str] = [column["name"] for column in info["columns"]]
        self.row_count: int = info["row_count"]
        self.truncated: str | None = info["truncated"]
        self._path: str = answer["path"]

    def __len__(self) -> int:
        return self.row_count

    def arrow(self) -> pyarrow.Table:
        """The whole result as an Arrow table, mapped from the artifact without copying."""
        try:
            import pyarrow
        except ImportError as error:
            raise Unavailable(
                "pyarrow is not installed in this kernel", remedy='install "pyarrow" in the kernel\'s environment'
            ) from error
        return pyarrow.ipc.open_file(pyarrow.memory_map(self._path)).read_all()

    def df(self) -> pandas.DataFrame:
        """The result as a pandas DataFrame."""
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """The result as a polars DataFrame, sharing the mapped memory where polars can."""
        try:
            import polars
        except ImportError as error:
            raise Unavailable(
                "polars is not installed in this kernel", remedy='pip install "learngraph[demo]" or polars'
            ) from error
        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame


class Metric(Shown):
    """One evaluated metric card; cite it as `[[m:name]]`.

    Attributes:
        value: exact decimal, or None when `state` is not `ok`.
        reason: why there is no value.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(body["bundle"])
        self.ref = f"m:{body['name']}"
        self.name: str = body["name"]
        self.value: Decimal | None = decode_value(body["value"])
        self.unit: str | None = body["unit"]
        self.state: str = body["state"]
        self.reason: str | None = body["reason"]

    def __bool__(self) -> bool:
        return self.state == "ok"


class Metrics(Shown, Mapping[str, Metric]):
    """The metrics of one evaluation, by name."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        Shown.__init__(self, answer["bundle"])
        self._metrics = {body["name"]: Metric(body) for body in answer["metrics"]}

    def __getitem__(self, name: str) -> Metric:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


class Answer(Shown):
    """A model's answer.

    Attributes:
        ref: names the recorded call; `lg.report(answer)` lets the runtime send it back for repair.
        text: what the model wrote.
        value: the parsed value when a schema was given.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__({"text/plain": answer["text"], "text/markdown": answer["text"]})
        self.ref: str = answer["ref"]
        self.text: str = answer["text"]
        self.value: Any = decode_value(answer["value"])

    def __str__(self) -> str:
        return self.text


class Report(Shown):
    """A report document: shown with every number openable.

    Attributes:
        document: sha256 of the stored document.
        violations: what was not grounded (empty in a formal run, which fails instead).
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(answer["bundle"])
        self.document: str = answer["document"]
        self.violations: list[dict[str, Any]] = list(answer["violations"])


class Verdict:
    """The outcome of `lg.validate`: truthy when valid, else `errors` says where and why."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.valid: bool = answer["valid"]
        self.errors: list[dict[str, str]] = list(answer["errors"])

    def __bool__(self) -> bool:
        return self.valid

    def __repr__(self) -> str:
        return "valid" if self.valid else "invalid: " + "; ".join(f"{e['path']}: {e['message']}" for e in self.errors)
