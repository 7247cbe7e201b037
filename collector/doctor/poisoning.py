"""What the checks of closed epochs have found: reports that do not look like honest ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..core.config import Config
from .findings import GOOD, WARNING, Finding
from .state import State

_MOST: Final = 3  # sentences of an epoch; one attack can fail many checks


def suspicious(config: Config, state: State) -> Iterator[Finding]:
    """Tell each epoch in which something was found."""
    if not state.watched:
        return  # nobody has looked yet, or that may not be read
    for name, one in state.watched.items():
        for epoch, texts in one.found.items():
            more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
            what = f"{name}, {epoch}: {'; '.join(texts[:_MOST])}{more}"
            why = "fakes, a broken client or news; answers show it unchanged"
            step = "look who has the write key, and what else happened"
            step += ": docs/operate/operate.md#suspicious"
            yield Finding(WARNING, "poisoning", what, why, step)
    looked = sum(one.looked for one in state.watched.values())
    if looked and not any(one.found for one in state.watched.values()):
        yield Finding(
            GOOD, "poisoning", f"nothing in the {looked} last closed epochs looks made up"
        )
