"""A declared model, opened with what is known of its account: the key, the snapshot, the address."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from learngraph_kernel.accounts.hosts import host_resolver
from learngraph_kernel.accounts.snapshots import Snapshots
from learngraph_kernel.accounts.vault import Vault
from learngraph_kernel.models.config import ModelConfig, open_model
from learngraph_kernel.models.port import ModelAdapter
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home


def open_declared(
    config: ModelConfig,
    store: Store,
    home: Home,
    *,
    environ: Mapping[str, str] = os.environ,
    redact: Callable[[str], None] = lambda secret: None,
) -> ModelAdapter:
    """The adapter of a declared model; cheap, nothing is sent.

    Capabilities are those in learngraph.toml, else the probed ones, else what any endpoint takes. A secret is revealed
    when the model is asked, and `redact` is told before.

    Raises:
        ModelMisconfigured, BadHostMode, LoopbackRefused.
    """
    vault = Vault(store, home)

    def reveal(name: str) -> str:
        secret = vault.reveal(name)
        redact(secret)
        return secret

    if config.adapter == "litellm" and config.capabilities is None:
        snapshot = Snapshots(store).of(config)
        if snapshot is not None:
            config = replace(config, capabilities=snapshot.capabilities)
    if config.base_url is not None:
        config = replace(config, base_url=host_resolver(environ).resolve(config.base_url))
    return open_model(config, environ=environ, reveal=reveal)
