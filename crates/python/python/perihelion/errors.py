"""Why `once` and `ask` refuse to continue."""

from __future__ import annotations


class EffectError(RuntimeError):
    """An effect cannot be journaled. LangGraph's retry policies do not retry it by default."""


class OutcomeUnknown(EffectError):
    """An effect began and its outcome is not known: the process ended, or the function raised an error.

    Attributes:
        name: The name of the effect.
        key: Its idempotency key, the same for every attempt.
        error: The error of the function, or an empty text.
    """

    def __init__(self, name: str, key: str, error: str) -> None:
        reason = f"the function failed with {error}" if error else "the process ended first"
        super().__init__(
            f"it is not known whether an effect happened ({reason}); find out, then call the saver's settle(thread, "
            f"key, outcome) or withdraw(thread, key), or pass unknown= to once: {name}, key {key}"
        )
        self.name = name
        self.key = key
        self.error = error


class EffectDiverged(EffectError):
    """A node that ran again did something else than the journal says."""
