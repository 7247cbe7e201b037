"""What a client, a gateway or the child of a program is set up by, as one value."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError
from ..core.paths import PathOrStr, RegistryFile
from ..core.randomness import Randomness
from ..core.typing import TYPE_CHECKING
from ..privacy.caps import DEFAULT_CAPS, Caps
from ..privacy.consent import ConsentLike, OptOuts
from ..registry.contract import Registry
from ..storage.trusted_clock import Uptimes
from ..upload.transport import JSON, MESSAGEPACK, RequestsTransport, Transport
from ..wire.reports import DEVICE, GATEWAY, RELAYED, Bounds
from .background import Mode, ModeLike
from .inbox import OnReport

if TYPE_CHECKING:
    from ..upload.tokens import Issuer


@dataclass(frozen=True, repr=False)
class Options:
    """What an engine is made of.  ``Client`` says what each means.  Its repr tells no secret."""

    endpoint: str
    write_key: str
    registry: Registry | RegistryFile
    consent: ConsentLike
    data_dir: PathOrStr | None
    segment: Mapping[str, str] | None = None
    caps: Caps = DEFAULT_CAPS
    mode: ModeLike = Mode.MANUAL
    gateway: bool = False  # whether it speaks for devices, each with a ledger of its own
    dry_run: bool = False
    strict: bool = False
    remember: bool = False
    on_report: OnReport | None = None
    transport: Transport | None = None
    relay: str | None = None
    relay_key: str | None = None
    tokens: Issuer | None = None
    opt_outs: OptOuts | None = None
    clock: Callable[[], float] = time.time
    uptime: Uptimes | None = None
    randomness: Randomness | None = None
    withdrawn: Callable[[], bool] | None = None  # whether consent was taken back since

    @property
    def bounds(self) -> Bounds:
        """How much may wait, and be sent at once."""
        if self.gateway:
            return GATEWAY
        return DEVICE if self.relay is None else RELAYED

    def open_transport(self) -> Transport:
        """Return the way to the collector: by the relay, if there is one, and then only so.

        Raises: InvalidParameterError: as of the transports; or one of relay and its key is missing.
        """
        if self.transport is not None:
            return self.transport
        if self.relay is None and self.relay_key is None:
            content_type = MESSAGEPACK if self.gateway else JSON
            return RequestsTransport(self.endpoint, self.write_key, content_type=content_type)
        if self.relay is None or self.relay_key is None:
            name = "relay" if self.relay is None else "relay_key"
            raise InvalidParameterError(name, None, "must be given: a relay needs its key")
        from ..upload.ohttp import RelayTransport  # few applications have a relay

        return RelayTransport(self.relay, self.relay_key, self.endpoint, self.write_key)
