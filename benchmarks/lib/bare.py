"""A server that reads a body and answers, and does nothing else: what HTTP alone costs.

Run: ``granian --interface rsgi benchmarks.lib.bare:app``.
"""

from __future__ import annotations

from typing import Any


class Floor:
    """Answers every request alike."""

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Read the body and accept it."""
        await protocol()
        protocol.response_bytes(202, [("content-type", "application/json")], b"{}")


app = Floor()
