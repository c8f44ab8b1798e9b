"""`strict`: on an engine with a known way out of our containers, none is started."""

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


async def refuse_if_strict(core: Core) -> None:
    """Called before any container is made. Raises NotReady (`weak_engine`) when `strict` forbids it."""
    if not core.settings.strict:
        return
    found = await weakness(core)
    if found is not None:
        raise NotReady(found.what, code=found.code, remedy=found.remedy, zh=ZH)
