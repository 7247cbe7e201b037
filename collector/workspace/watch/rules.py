"""The file of watches: what to ask, when to raise an alarm, and where to send it.  Pure.

A watch is evaluated once for each period of its metric, when the version that it waits for is
published: a day for metrics of an hour or a day, else one epoch.  In any 365 days that is at most
``YEARLY`` times.  The chance of a false alarm is shared out evenly over watches, and of each watch
over its evaluations of a year: by Boole's inequality no more than ``false_alarms`` of years have a
false alarm of any watch, however their numbers depend on each other.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from client_sdk.core.epoch import DAY, LENGTHS, ONCE

from ...analytics.verb import ESTIMATE, load
from ...core.cells import LAST_VERSION
from ...core.errors import ConfigError, unread

_FALSE_ALARMS: Final = 0.05  # chance of any false alarm in any 365 days, if the file says nothing
_MOST_WATCHES: Final = 1_000  # of one file; each is asked once a day
_MOST_CHANNELS: Final = 20
_MOST_WINDOW: Final = 92  # periods that a number rests on
# Evaluations in any 365 days, by the length of a period.
YEARLY: Final[Mapping[str, int]] = {
    every: -(-365 * DAY // length) for every, length in LENGTHS.items() if length >= DAY
}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_NAME_RULE: Final = "must be 1 to 40 of a-z, 0-9 and -"
_KINDS: Final = ("above", "below", "changed", "silent")
_Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=300)]
_Number: TypeAlias = Annotated[float, Meta(ge=-1e15, le=1e15)]


class Channel(Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages go: a webhook, or a mail server.  Secrets are named by their files."""

    name: str
    webhook: str = ""  # an address
    webhook_file: str = ""  # a file that holds it, where the address itself is a secret
    secret_file: str = ""  # of the key that signs what is sent
    form: Literal["json", "slack"] = "json"
    private: bool = False  # the address may be one of this network
    mail: list[str] = field(default_factory=list)  # to whom
    sender: str = ""
    server: str = ""  # host:port
    tls: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password_file: str = ""


class Watch(Struct, frozen=True, forbid_unknown_fields=True):
    """One watch: a metric, a question, and one of above, below, changed and silent."""

    name: str
    metric: _Text
    above: _Number | None = None  # in the unit of the number; of a share a part of 1
    below: _Number | None = None
    changed: Annotated[float, Meta(ge=0, le=1e15)] | None = None  # by more than this
    silent: Annotated[float, Meta(gt=0, lt=1)] | None = None  # fewer than this part of the usual
    item: _Text | None = None  # all of them, if it is left out; of numbers the mean
    verb: _Text = ESTIMATE
    options: dict[str, Any] = field(default_factory=dict)
    filters: list[tuple[Literal["is", "is_not"], _Text, list[_Text]]] = field(default_factory=list)
    window: Annotated[int, Meta(ge=1, le=_MOST_WINDOW)] = 1  # periods that a number rests on
    version: Annotated[int, Meta(ge=0, le=LAST_VERSION)] = 0  # published, that it waits for
    channels: list[str] | None = None  # all, if it is left out
    note: Annotated[str, Meta(max_length=300)] = ""  # sent along: what to do

    @property
    def kind(self) -> str:
        """Which of the four it is."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def definition(self) -> str:
        """A text that differs for another question under the same name."""
        question = msgspec.structs.replace(self, channels=None, note="")
        return hashlib.sha256(msgspec.json.encode(question)).hexdigest()[:16]


class Watches(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file."""

    watch: Annotated[list[Watch], Meta(min_length=1, max_length=_MOST_WATCHES)]
    channel: Annotated[list[Channel], Meta(max_length=_MOST_CHANNELS)] = field(default_factory=list)
    false_alarms: Annotated[float, Meta(gt=0, le=0.5)] = _FALSE_ALARMS

    def rate(self, every: str) -> float:
        """Return the chance of a false alarm that one evaluation may have.

        Args: every: length of the metric's epochs, not ``once``.
        """
        return self.false_alarms / len(self.watch) / YEARLY[period_of(every)]

    def channels_of(self, watch: Watch) -> list[str]:
        """Return the names of the channels to which *watch* reports."""
        every = [channel.name for channel in self.channel]
        return every if watch.channels is None else watch.channels


def is_bounded(watch: Watch) -> bool:
    """Return whether the rate is a bound: what a report weighs in the number is known."""
    return watch.kind == "silent" or load(watch.verb).is_bounded


def period_of(every: str) -> str:
    """Return the length of the periods of a metric whose epochs are *every* long."""
    return "1d" if LENGTHS[every] < DAY and every != ONCE else every


def read(path: str) -> Watches:
    """Return the watches of the file at *path*.

    Raises: ConfigError: it cannot be read, or breaks a rule; the first one is named.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("HEARSAY_WATCHES", path, unread(error)) from None
    return parse(text)


def parse(text: str) -> Watches:
    """Return the watches that TOML *text* holds.  Raises ConfigError as ``read``."""
    try:
        watches = msgspec.convert(tomllib.loads(text), Watches)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("watches", "", f"is no TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ConfigError("watches", "", str(error)) from None
    _require_names("channel", [channel.name for channel in watches.channel])
    _require_names("watch", [watch.name for watch in watches.watch])
    for channel in watches.channel:
        _require_channel(channel)
    for watch in watches.watch:
        _require_watch(watch, {channel.name for channel in watches.channel})
    return watches


def _require_names(what: str, names: list[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{what}.name", name[:40], _NAME_RULE)
        if names.count(name) > 1:
            raise ConfigError(f"{what}.name", name, "must be given once")


def _require_channel(channel: Channel) -> None:
    """Raise ConfigError unless it is either a webhook or a mail server, and whole."""
    place = f"channel.{channel.name}"
    if bool(channel.webhook or channel.webhook_file) == bool(channel.mail):
        raise ConfigError(place, "", "must have either a webhook or mail")
    if channel.webhook and channel.webhook_file:
        raise ConfigError(place, "", "must have webhook or webhook_file, not both")
    if channel.webhook:
        _require_address(channel, f"{place}.webhook")
    if not channel.mail:
        return
    host, _, port = channel.server.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{place}.server", channel.server, "must be host:port of a mail server")
    for address in (channel.sender, *channel.mail):
        if not re.fullmatch(r"[^@\s<>,]+@[^@\s<>,]+", address):
            raise ConfigError(f"{place}.mail", address, "sender and mail must be addresses")
    if bool(channel.user) != bool(channel.password_file):
        raise ConfigError(f"{place}.user", channel.user, "needs password_file, and the reverse")


def _require_address(channel: Channel, place: str) -> None:
    """Raise ConfigError unless the webhook is HTTPS, or plain where that is allowed."""
    try:
        parts = urlsplit(channel.webhook)
        host = parts.hostname or ""
    except ValueError:
        raise ConfigError(place, "", "must be https://host/path") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.fragment:
        raise ConfigError(place, "", "must be https://host/path")  # it may hold a secret: not shown
    if parts.scheme == "http" and not channel.private:
        raise ConfigError(place, "", "must be https; with private = true it may be http")


def _require_watch(watch: Watch, channels: set[str]) -> None:
    """Raise ConfigError unless exactly one of the four conditions is set, and channels exist."""
    place = f"watch.{watch.name}"
    kinds = [kind for kind in _KINDS if getattr(watch, kind) is not None]
    if len(kinds) != 1:
        rule = f"must have exactly one of {', '.join(_KINDS)}; has {', '.join(kinds) or 'none'}"
        raise ConfigError(place, "", rule)
    for name in watch.channels or ():
        if name not in channels:
            known = ", ".join(sorted(channels)) or "none"
            raise ConfigError(f"{place}.channels", name[:40], f"is no channel; known are {known}")
    asks = watch.item is not None or watch.options or watch.verb != ESTIMATE
    if watch.silent is not None and asks:
        raise ConfigError(place, "", "silent counts reports: it takes no item, verb or options")
