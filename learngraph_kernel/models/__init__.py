"""The model port of the agent and of `lg.ask`, and its adapters. A vendor library is imported on first use only."""
