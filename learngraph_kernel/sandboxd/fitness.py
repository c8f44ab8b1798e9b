"""Whether the engine may start a container of ours at all: it has the runtime that was asked for, and, under `strict`,
no known way out."""

from __future__ import annotations

from learngraph_kernel.sandbox.answers import NotReady
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.preflight import (
    WeakEngine,
    engine_findings,
    installed_packages,
    os_release,
    refuse_weak,
)

ZH = ("容器引擎存在已知的逃逸漏洞", "请升级 runc、containerd 与 docker.io，或使用 gVisor（runsc）")


async def weakness(core: Core) -> WeakEngine | None:
    """The engine's known ways out, as an error; None without any. gVisor's containers do not run on runc.

    Raises:
        LearnGraphError: the engine does not answer.
    """
    version = await core.workers.run(core.engine.version)
    findings = engine_findings(version, await core.workers.run(installed_packages), os_release())
    if core.settings.runtime == "runsc":
        findings = [finding for finding in findings if finding.weakness.component != "runc"]
    try:
        refuse_weak(findings)
    except WeakEngine as error:
        return error
    return None


async def missing_runtime(core: Core) -> NotReady | None:
    """Why the runtime of the settings cannot be used; None when the engine has it. runc is every engine's own.

    Raises:
        LearnGraphError: the engine does not answer.
    """
    wanted = core.settings.runtime
    if wanted == "runc" or wanted in await core.workers.run(core.engine.runtimes):
        return None
    return NotReady(
        f"the engine has no runtime {wanted!r} (gVisor)",
        code="runtime_missing",
        remedy=f'install gVisor and tell the engine (`{wanted} install`, then restart it), or set runtime = "runc"',
        zh=(
            f"容器引擎未安装运行时 {wanted}（gVisor）",
            f'请安装 gVisor 并执行 `{wanted} install` 后重启引擎，或设 runtime = "runc"',
        ),
    )


async def refuse_unfit_engine(core: Core) -> None:
    """Called before any container is made.

    Raises:
        NotReady: `runtime_missing`; `weak_engine` when `strict` forbids it.
    """
    missing = await missing_runtime(core)
    if missing is not None:
        raise missing
    if not core.settings.strict:
        return
    found = await weakness(core)
    if found is not None:
        raise NotReady(found.what, code=found.code, remedy=found.remedy, zh=ZH)
