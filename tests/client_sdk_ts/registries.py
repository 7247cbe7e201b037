"""The registries of the package's own tests, and how ``client_sdk_ts/tests/data`` is made of them.

``python -m tests.client_sdk_ts.registries`` writes the folder anew.
"""

from __future__ import annotations

from typing import Final

from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    HEAD,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RETENTION,
    SET,
    STRING,
    TWO_LAYER,
    table,
)
from tests.support.node import PACKAGE

DATA: Final = PACKAGE / "tests" / "data"
_COUNT: Final = {
    **NUMBER,
    "type": '"count"',
    "mechanism": '"square_wave"',
    "max": "1000",
    "step": "10",
}
_SEGMENTED: Final = HEAD.replace(
    'app = "notes"', 'app = { name = "notes", automation = "segment" }'
)

EVERY_TYPE: Final = _SEGMENTED + "".join(
    (
        table("dark", BOOLEAN, every='"1d"'),
        table("plan", CATEGORY),
        table("theme", CATEGORY, other='"else"', mechanism='"auto"'),
        table("opens", _COUNT, every='"1h"'),
        table("took", NUMBER, type='"duration"', mechanism='"duchi"', every='"28d"'),
        table("tools", SET),
        table("fonts", SET, other='"c"'),
        table("shop", FUNNEL, every='"once"'),
        table("back", RETENTION),
        table("person", PAIR),
        table("place", LOCATION),
        table("hours", KEY_VALUE),
        table("search", STRING),
        table("same", TWO_LAYER, longitudinal='"permanent"', epsilon_permanent=None),
        table("kept", TWO_LAYER),
        table("crashed", BOOLEAN, every='"1d"', aggregate='"any"', otherwise="false"),
        table("runs", NUMBER, every='"1d"', aggregate='"sum"', otherwise="2.5", need="0.75"),
        table("peak", NUMBER, every='"1d"', aggregate='"max"'),
        table("mode", CATEGORY, aggregate='"most_common"', otherwise='"pro"'),
        table("furthest", FUNNEL, aggregate='"max"', otherwise='"none"'),
        table("kit", SET, aggregate='"last"', otherwise='["a", "c"]', robust="false"),
        table("spare", KEY_VALUE, aggregate='"last"', otherwise="{ video = 2.5, chess = -10 }"),
        table("words", STRING, aggregate='"last"', otherwise='"ab"', segments="[]"),
    )
)
PANEL: Final = (
    HEAD
    + '[panel]\nweek = "8"\n'
    + "".join(table(f"week_{i}", CATEGORY, weight=str(i)) for i in (1, 2, 3, 4))
    + "".join(table(f"day_{i}", BOOLEAN, every='"1d"', epsilon='"0.25"') for i in (1, 2))
    + table("always", BOOLEAN, epsilon='"0.5"', panel="false")
    + "".join(table(f"life_{i}", BOOLEAN, every='"once"') for i in (1, 2))
    + table("kept", TWO_LAYER)
)
TEXTS: Final = {"every_type.json": EVERY_TYPE, "panel.json": PANEL}


def written() -> dict[str, str]:
    """Return the files of the folder by their names."""
    return {name: compiled(Registry.from_text(text)) for name, text in TEXTS.items()}


if __name__ == "__main__":
    for name, text in written().items():
        (DATA / name).write_text(text, "utf-8")
