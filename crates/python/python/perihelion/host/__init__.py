"""The process in which `perihelion serve --graphs langgraph.json` runs LangGraph graphs.

The server starts `python -m perihelion.host` with a socket as standard input and asks it over frames of JSON. The
server owns threads and runs; this process keeps checkpoints in the same database and can be killed at any time.
"""
