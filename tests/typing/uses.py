"""Right uses type-check.  Each wrong one is marked, and mypy refuses a mark without a fault."""

from __future__ import annotations

import client_sdk
from client_sdk import Client, command
from client_sdk.gateway import Gateway

from .notes_metrics import Metrics, UiThemeValue


def right_uses(client: Client, chosen: UiThemeValue, typed: str) -> None:
    """Values of every kind, as an application has them."""
    m = Metrics(client)
    m.ui.theme.record("dark")
    m.ui.theme.record(chosen)
    m.ui.panel.open.record(True)
    m.note_count.record(12)
    m.note_count.record(12.5)
    m.formats.record({"pdf", "html"})
    m.formats.record([])
    m.minutes.record({"edit": 3, "read": 12.5})
    m.depot.record((8.54, 47.37))
    m.person.record({"sex": "male", "income": "low"})
    m.export.record("chosen")
    m.export.record(None)
    m.weeks.record(["week 0", "week 2"])
    m.terminal.record(typed)
    m.plugins.record(["git", typed])
    m.saves.add()
    m.saves.add(2)
    m.saves.record(2)
    m.exported.seen()
    with m.startup.time():
        m.indexing.add(0.5)


def right_timers(client: Client, gateway: Gateway) -> None:
    """What is timed keeps its signature."""
    m = Metrics(client)

    @m.startup.time(failures=False)
    def start(path: str) -> int:
        return len(path)

    @m.indexing.time()
    async def index(path: str) -> int:
        return len(path)

    start("notes") + 1
    start(7)  # type: ignore[arg-type]  # not of the signature
    index("notes") + 1  # type: ignore[operator]  # a coroutine
    Metrics(command).saves.add()
    Metrics(gateway.device("1st floor")).saves.add()
    Metrics(gateway)  # type: ignore[arg-type]  # it needs to know of which device
    Metrics(client_sdk)  # type: ignore[arg-type]  # a module that records nothing


def wrong_uses(client: Client, typed: str) -> None:
    """What no registry takes."""
    m = Metrics(client)
    m.ui.theme.record("drak")  # type: ignore[arg-type]  # no such item
    m.ui.theme.record(typed)  # type: ignore[arg-type]  # any text
    m.ui.theme.record(1)  # type: ignore[arg-type]  # its index
    m.ui.panel.open.record("true")  # type: ignore[arg-type]  # a text
    m.note_count.record("12")  # type: ignore[arg-type]  # a text
    m.formats.record("pdf")  # type: ignore[arg-type]  # one item for a set
    m.formats.record({"docx"})  # type: ignore[arg-type]  # no such item
    m.minutes.record({"write": 1.0})  # type: ignore[dict-item]  # no such key
    m.minutes.record({"edit": "long"})  # type: ignore[dict-item]  # no number
    m.depot.record(8.54)  # type: ignore[arg-type]  # one coordinate
    m.depot.record((8.54, 47.37, 0))  # type: ignore[arg-type]  # three
    m.person.record({"sex": "male"})  # type: ignore[typeddict-item]  # one part
    m.person.record({"sex": "low", "income": "low"})  # type: ignore[typeddict-item]  # no such item
    m.export.record("opend")  # type: ignore[arg-type]  # no such step
    m.weeks.record("week 0")  # type: ignore[arg-type]  # one period for a set
    m.saves.add("2")  # type: ignore[arg-type]  # a text
    m.saves.seen()  # type: ignore[attr-defined]  # a sum
    m.saves.time()  # type: ignore[attr-defined]  # no time
    m.note_count.add()  # type: ignore[attr-defined]  # each epoch has one value
    m.exported.add()  # type: ignore[attr-defined]  # no number
    m.exported.seen(False)  # type: ignore[call-arg]  # what was not seen is said by silence
    m.ui.panel.open.seen()  # type: ignore[attr-defined]  # each epoch has one value
    m.ui.theme.time()  # type: ignore[attr-defined]  # no number
    m.startup.add(3)  # type: ignore[attr-defined]  # times that are not summed
    m.terminal.record(7)  # type: ignore[arg-type]  # no text
    m.plugins.record("git")  # type: ignore[arg-type]  # one item for a set
    m.theme.record("dark")  # type: ignore[attr-defined]  # a name without its group
    m.ui.theme = m.ui.panel  # type: ignore[misc,assignment]  # handles are not replaced
    Metrics(None)  # type: ignore[arg-type]  # no client


def wrong_arguments(registry: str) -> None:
    """What the constructor would refuse, said by the type checker before."""
    Client("https://t.example.org", "key", registry, consent="granted", data_dir=None)
    Client("https://t.example.org", "key", registry, consent="grantd", data_dir=None)  # type: ignore[arg-type]  # misspelt
    Client(
        *("https://t.example.org", "key", registry),
        consent="unknown",
        data_dir=None,
        mode="foo",  # type: ignore[arg-type]  # no mode
    )
