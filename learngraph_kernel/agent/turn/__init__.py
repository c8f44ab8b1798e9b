"""One turn: from a question to a checked answer, as a graph of small steps that survives a crash between any two.

`limits` and `state` are the values, `guards` the pure rules, `prompt` and `history` what a model is told, `answer` the
check of what it says; `steps` is what each node does, and `graph` puts the nodes on LangGraph, the only module that
imports it. Bodies (messages, results) are artifacts; the graph's state holds their names.
"""
