"""The model port of the agent and of `lg.ask`, and its adapters. A vendor library is imported on first use only.

Start reading at `port`: one method that streams events (`events`) for a request (`messages`); `deliver` and `complete`
put time-outs and retries round it. `config` reads `[models.…]`, `open_model` gives the adapter, `ask` is what a cell
uses. Imports `canonical` and `errors` of ours and nothing else; only `litellm_adapter` imports LiteLLM.
"""

from __future__ import annotations

from learngraph_kernel.models.ask import Answer, ask, repair, written
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.config import ModelConfig, choose_model, open_model, parse_models
from learngraph_kernel.models.events import NormalizedEvent, Usage
from learngraph_kernel.models.messages import Message, NormalizedRequest, Tool, ToolCall, ToolResult
from learngraph_kernel.models.port import Completion, ModelAdapter, Pacing, complete, deliver, request_for

__all__ = [
    "Answer",
    "Capabilities",
    "Completion",
    "Message",
    "ModelAdapter",
    "ModelConfig",
    "NormalizedEvent",
    "NormalizedRequest",
    "Pacing",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "ask",
    "choose_model",
    "complete",
    "deliver",
    "open_model",
    "parse_models",
    "repair",
    "request_for",
    "written",
]
