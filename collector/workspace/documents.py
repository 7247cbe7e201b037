"""Boards, saved questions, notes and shared links as documents: their forms, limits and files.

A document wraps what people wrote: who did, when, and which version it is.  Everything is checked
here before it is kept, and nothing is markup: pages show texts as texts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from ..core.errors import ConfigError, QueryError
from ..query import Query
from ..query.options import as_json, fields_of
from ..query.request import convert
from ..query.window import day_of_text

MAX_TITLE: Final = 120  # characters: a line of a page
_MAX_ABOUT: Final = 1_000  # characters: a paragraph
MAX_WORDS: Final = 1_000  # characters of a panel of text: a page of them is no board
MAX_GROUP: Final = 60  # characters
MAX_TEXT: Final = 140  # characters of a note: a mark in a chart says it all
_MAX_ADDRESS: Final = 500  # characters
MAX_PANELS: Final = 24  # of a board: each is a question that a visit asks
_MAX_QUESTION: Final = 8 * 1024  # bytes of one question as JSON
MAX_RECORD: Final = 64 * 1024  # bytes of a stored document
FILE: Final = "file"  # the author of what a file says
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

_Text: TypeAlias = str
C = TypeVar("C")


class Panel(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question or a text on a board, and how it is shown."""

    title: _Text  # a text may have none: ""
    query: Query | None = None
    wide: bool = False  # it takes the whole width
    text: _Text = ""  # in paragraphs, of a panel without a question

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that it is about; () of a text."""
        return tuple(self.query.metrics) if self.query else ()


class Board(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Questions that are looked at together, in order."""

    title: _Text
    panels: Annotated[list[Panel], Meta(max_length=MAX_PANELS)] = field(default_factory=list)
    about: _Text = ""
    group: _Text = ""  # boards of one group stand together
    app: _Text = ""  # only for those who may see this app; "" for all

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that it is about."""
        return tuple(dict.fromkeys(name for panel in self.panels for name in panel.metrics))


class SavedQuestion(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A saved question."""

    title: _Text
    query: Query
    app: _Text = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that it is about."""
        return tuple(self.query.metrics)


class Note(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What happened on a day, such as a release: a mark on every time axis that it is about."""

    at: _Text  # the day, such as 2026-11-20
    text: _Text
    metric: _Text = ""  # only on charts of this metric; "" for all of its app
    app: _Text = ""
    url: _Text = ""  # where more is said

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that it is about; () for all."""
        return (self.metric,) if self.metric else ()


class Grant(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a shared link opens: these questions about these metrics, up to a moment."""

    title: _Text
    panels: Annotated[list[Panel], Meta(min_length=1, max_length=MAX_PANELS)]
    reads: list[tuple[str, str]]  # apps and metrics
    expires: int  # Unix time
    board: _Text = ""  # the name of the board whose panels these were; "" for one answer
    app: _Text = ""
    about: _Text = ""  # what the board said of itself

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that it opens."""
        return tuple(dict.fromkeys(name for panel in self.panels for name in panel.metrics))


Content: TypeAlias = Board | SavedQuestion | Note | Grant


class Author(NamedTuple):
    """The author of a version of a document."""

    id: str  # unique to the author
    name: str  # is shown, and decides nothing: two authors may have the same


class Document(Struct, Generic[C], frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One version of a document."""

    content: C
    author: str  # the name of who saved this version
    at: int  # Unix time
    by: str = ""  # the id of who saved this version
    began: str = ""  # the id of who saved the first version
    first_author: str = ""  # the name of who saved the first version
    version: int = 1
    deleted: bool = False  # it is kept, to be restored
    name: str = ""  # by which it is addressed

    @property
    def is_from_file(self) -> bool:
        """Whether it stands in a file, where it is changed."""
        return self.version == 0


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of boards, saved questions and notes."""

    schema: Literal[1]
    boards: dict[str, Board] = field(default_factory=dict)
    questions: dict[str, SavedQuestion] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def checked(content: C, place: str = "") -> C:
    """Return *content* with texts trimmed.

    Raises: QueryError: names the field, below *place*, and the rule.
    """
    start = f"{place}." if place else ""
    match content:
        case Board():
            return msgspec.structs.replace(
                content,
                title=line(content.title, f"{start}title", MAX_TITLE),
                about=line(content.about, f"{start}about", _MAX_ABOUT, least=0),
                group=line(content.group, f"{start}group", MAX_GROUP, least=0),
                panels=list(_panels(content.panels, start)),
            )
        case SavedQuestion():
            _require_short(content.query, f"{start}query")
            title = line(content.title, f"{start}title", MAX_TITLE)
            return msgspec.structs.replace(content, title=title)
        case Note():
            return msgspec.structs.replace(
                content,
                at=day_of_text(content.at.strip(), f"{start}at").isoformat(),
                text=line(content.text, f"{start}text", MAX_TEXT),
                url=_address(content.url.strip(), f"{start}url"),
            )
        case Grant():
            title = line(content.title, f"{start}title", MAX_TITLE)
            panels = list(_panels(content.panels, start))
            about = line(content.about, f"{start}about", _MAX_ABOUT, least=0)
            return msgspec.structs.replace(content, title=title, panels=panels, about=about)
    raise TypeError(type(content))


def plain(content: Any) -> dict[str, Any]:
    """Return *content* as JSON types, its questions without what they have by default.

    So a release that adds a field to questions neither loses a document nor breaks a link.
    """
    value: dict[str, Any] = msgspec.to_builtins(content)
    for panel, shown in zip(value.get("panels", ()), getattr(content, "panels", ()), strict=True):
        if shown.query:
            panel["query"] = fields_of(shown.query)
    if isinstance(content, SavedQuestion):
        value["query"] = fields_of(content.query)
    return value


def line(text: str, place: str, most: int, least: int = 1) -> str:
    """Return *text* without blanks around it.  Raises QueryError, which does not repeat it."""
    text = " ".join(text.split())  # a break of a line in a form is a blank in a title
    if not (least <= len(text) <= most and text.isprintable()):
        rule = f"must be {f'{least} to' if least else 'at most'} {most} printable characters"
        raise QueryError(place, rule)
    return text


def paragraphs(text: str, place: str) -> str:
    """Return *text* with single blank lines between its paragraphs.  Raises QueryError."""
    lines = [" ".join(each.split()) for each in text.strip().splitlines()]
    text = re.sub("\n{3,}", "\n\n", "\n".join(lines))
    if len(text) > MAX_WORDS or not all(map(str.isprintable, lines)):
        raise QueryError(place, f"must be at most {MAX_WORDS:,} printable characters")
    return text


def read_file(path: str) -> File:
    """Return what the TOML file at *path* says.  Raises ConfigError: names what is wrong in it."""
    try:
        with open(path, "rb") as file:
            value = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError("HEARSAY_BOARDS", path, f"cannot be read as TOML: {error}") from None
    for note in value["notes"] if isinstance(value.get("notes"), list) else ():
        if isinstance(note, dict) and hasattr(note.get("at"), "isoformat"):
            note["at"] = note["at"].isoformat()
    try:
        content = convert(value, File, "")
        return msgspec.structs.replace(
            content,
            boards=dict(_named(content.boards, "boards")),
            questions=dict(_named(content.questions, "questions")),
            notes=[checked(note, f"notes.{i}") for i, note in enumerate(content.notes)],
        )
    except QueryError as error:
        raise ConfigError("HEARSAY_BOARDS", path, str(error)) from None


def slug_of(title: str) -> str:
    """Return the beginning of an address from *title*: plain letters and digits."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)[:40].strip("-")


def is_name(text: str) -> bool:
    """Return whether *text* may name a document."""
    return _NAME.fullmatch(text) is not None


def _named(contents: dict[str, C], kind: str) -> Iterator[tuple[str, C]]:
    for name, content in contents.items():
        if not is_name(name):
            raise QueryError(kind, "names must be of a-z, 0-9 and hyphens, at most 64")
        yield name, checked(content, f"{kind}.{name}")


def _panels(panels: list[Panel], start: str) -> Iterator[Panel]:
    for number, panel in enumerate(panels):
        place = f"{start}panels.{number}"
        text = paragraphs(panel.text, f"{place}.text")
        if bool(panel.query) == bool(text):
            raise QueryError(f"{place}.text", "must be there or else a query, and not both")
        if panel.query:
            _require_short(panel.query, f"{place}.query")
        title = line(panel.title, f"{place}.title", MAX_TITLE, least=0 if text else 1)
        yield msgspec.structs.replace(panel, title=title, text=text)


def _require_short(query: Query, place: str) -> None:
    if len(as_json(query).encode()) > _MAX_QUESTION:
        raise QueryError(place, f"must be at most {_MAX_QUESTION:,} bytes of JSON")


def _address(text: str, place: str) -> str:
    """Return a web address; an address of a script or a file is refused."""
    rule = f"must be an address that begins with https:// or http://, of at most {_MAX_ADDRESS}"
    try:
        parts: Any = urlsplit(text)
        is_web = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        is_web = False
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(" <>\"'\\`")
    if text and not (is_web and is_plain and len(text) <= _MAX_ADDRESS):
        raise QueryError(place, f"{rule} characters without blanks")
    return text
