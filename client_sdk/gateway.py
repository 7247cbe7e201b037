"""The gateway: a machine that speaks for many devices, each with a ledger and a memo of its own.

A ledger is kept under a key that is drawn from the local name of its device and a secret of the
gateway, a file beside the database.  So the database has no names, and no one without that file can
tell whose ledger is whose.  Unlike the device secret it is kept when consent is withdrawn: without
it every ledger would begin anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import TracebackType

from .core.dataclass import replace
from .core.errors import InvalidValueError, StoreError
from .core.paths import PathOrStr, RegistryFile
from .core.randomness import Randomness
from .core.stats import Reason
from .core.typing import TYPE_CHECKING, Final, TypeVar
from .privacy.caps import DEFAULT_CAPS, Caps
from .privacy.consent import ConsentLike, OptOuts
from .recording.engine import Engine
from .recording.inbox import Pending
from .recording.options import Options
from .registry.contract import Registry
from .storage.schema import set_property
from .storage.secret import NAMES_FILE, Secret, device_key
from .storage.trusted_clock import Uptimes
from .upload.transport import Transport
from .upload.uploader import Delivery

if TYPE_CHECKING:
    from .storage.store import Store

T = TypeVar("T")

GROUP: Final = 5_000  # reports of one transaction; a tenth of a second in which nobody else writes
UPLOAD_TIMEOUT: Final = 120.0  # seconds; a dozen uploads of 8 MiB over a line of 10 Mbit/s


class Gateway:
    """Records values of many devices, and uploads their reports in large columns.

    What a device has spent, and what it said before, is kept under a key drawn from its name and a
    secret; the name is neither stored nor sent, and no upload tells how many devices there are.
    Thread-safe.  There is no thread: the caller records, and calls ``upload`` now and then.  The
    constructor and ``set_consent`` raise on wrong arguments; nothing else does: each refusal and
    failure is counted in ``stats``.
    """

    def __init__(
        self,
        endpoint: str,
        gateway_key: str,
        registry: Registry | RegistryFile,
        *,
        consent: ConsentLike,
        data_dir: PathOrStr | None,
        segment: Mapping[str, str] | None = None,
        caps: Caps = DEFAULT_CAPS,
        transport: Transport | None = None,
        opt_outs: OptOuts | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Uptimes | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        """Prepare to record; nothing is sent yet, and nothing opened but for aggregated metrics.

        Args:   endpoint, gateway_key: the collector, unused if *transport* is given.
                registry: a registry or the path of its file.
                consent: for all devices; who has not agreed is not to be recorded.
                data_dir: a folder of this gateway, settled now; None forgets the ledgers with the
                process.
                segment: dimension to value, as declared in the registry, the same for all devices.
                caps: the most epsilon to spend on each device.
                opt_outs: who may say no above the caller; None: as of ``Client``, but a gateway
                runs by itself, and its devices are people.
                clock: Unix time in seconds.  uptime, randomness: the operating system's, unless a
                test.
        Raises: InvalidParameterError, RegistryError.
        """
        self._engine = Engine(
            Options(
                endpoint=endpoint,
                write_key=gateway_key,
                registry=registry,
                consent=consent,
                data_dir=data_dir,
                segment=segment,
                caps=caps,
                gateway=True,
                transport=transport,
                opt_outs=opt_outs,
                clock=clock,
                uptime=uptime,
                randomness=randomness,
            )
        )
        self._stats, self._recorder = self._engine.stats, self._engine.recorder
        self._keys = DeviceKeys(self._engine.folder, self._engine.store)
        self._clock, self._closed = clock, False

    def record(self, device: str, name: str, value: object) -> None:
        """Report *value* of the metric called *name* for *device*, by whatever name you know it."""
        self.record_many([(device, name, value)])

    def record_many(self, values: Iterable[tuple[str, str, object]]) -> None:
        """Report many values, each with its device and metric; GROUP at a time are written at once.

        A refused one does not stop the others.
        """
        if self._closed:
            self._stats.add(Reason.CLOSED, sum(1 for _ in self._each(values)))
            return
        self._engine.tick()
        pendings = self._prepared(values)
        while group := list(islice(pendings, GROUP)):
            self._engine.commit(group)

    def device(self, name: str) -> GatewayDevice:
        """Return the device that you know by *name*, to record with typed handles."""
        return GatewayDevice(self, name)

    @property
    def registry(self) -> Registry:
        """The registry by which values are recorded."""
        return self._engine.registry

    def watch(self, devices: Iterable[str]) -> None:
        """Say that *devices* are there: scheduled metrics report of them, whatever happens.

        Call it in each epoch, and for all that are there, or silence tells who had nothing to say.
        """
        if self._closed:
            return
        self._engine.tick()
        keys = self._keys_of(devices)
        while group := list(islice(keys, GROUP)):
            try:
                counts = self._recorder.watch(group, self._clock())
            except Exception as error:  # noqa: BLE001 - as for a value
                self._stats.fail(error, len(group))
            else:
                self._stats.add_all(counts)

    def upload(self, timeout: float = UPLOAD_TIMEOUT) -> None:
        """Send what waits if it is time to, by a random schedule of some hours; call it often."""
        self._engine.upload(timeout)

    def flush(self, timeout: float = UPLOAD_TIMEOUT) -> Delivery:
        """Send what waits now, and wait for no answer after *timeout* seconds.

        Returns what is left.  After a failure nothing is sent until the waiting time, which the
        collector may lengthen up to a day, is over.
        """
        return self._engine.flush(timeout)

    def close(self) -> None:
        """Close the database; what waits is sent by the next run."""
        self._closed = True
        self._engine.close(0.0)  # it sends nothing: the schedule outlives the process

    def set_consent(self, consent: ConsentLike) -> None:
        """Obey a new answer from now on; denied erases all that waits.

        Raises: InvalidParameterError: not a Consent; the old answer stands.
        """
        self._engine.set_consent(consent)

    def stats(self) -> Mapping[str, int]:
        """Return the counts by reason since this gateway was made; see ``stats.Reason``."""
        return self._engine.counts()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _each(self, entries: Iterable[T]) -> Iterator[T]:
        """Yield *entries* until they end or fail; that is counted."""
        try:
            yield from entries
        except Exception as error:  # noqa: BLE001 - a caller's iterator
            self._stats.fail(error)

    def _keys_of(self, devices: Iterable[str]) -> Iterator[bytes]:
        """Yield the key of each of *devices*; count why not."""
        for device in self._each(devices):
            try:
                yield self._keys.key(device)
            except Exception as error:  # noqa: BLE001 - a name must not stop the others
                self._stats.fail(error)

    def _prepared(self, values: Iterable[tuple[str, str, object]]) -> Iterator[Pending]:
        """Yield each of *values* that may be reported; count why not."""
        for entry in self._each(values):
            try:
                device, name, value = entry
                pending = self._recorder.prepare(name, value, self._clock())
                yield replace(pending, device=self._keys.key(device))
            except Exception as error:  # noqa: BLE001 - a value must not stop the others
                self._stats.fail(error)


class GatewayDevice:
    """One device of a gateway: ``Metrics(gateway.device("1st floor"))`` has its typed handles."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        """Record for the device that *gateway*'s caller knows by *name*."""
        self._gateway, self._name = gateway, name
        self.registry = gateway.registry  # with which handles compare their definitions

    def record(self, name: str, value: object) -> None:
        """Report *value* of the metric called *name*, as ``Gateway.record`` does."""
        self._gateway.record(self._name, name, value)


class DeviceKeys:
    """Keys for the names of devices."""

    def __init__(self, folder: PathOrStr | None, store: Store) -> None:
        """Keep the secret in *folder*, beside the database of *store*; None: in memory."""
        self._secret, self._store = Secret(folder, NAMES_FILE), store
        self._drawn: bytes | None = None

    def key(self, name: object) -> bytes:
        """Return the key of the device called *name*.

        Raises: InvalidValueError: no name; it is not shown.  StoreError: no secret.
        """
        if not isinstance(name, str) or not name:
            raise InvalidValueError("device", "takes a name")
        try:
            return device_key(self._drawn or self._load(), name)
        except UnicodeEncodeError:  # the error would show the name
            raise InvalidValueError("device", "takes a name in Unicode") from None

    def _load(self) -> bytes:
        """Take over the secret, or make one; then no older ledger can be found: all is in doubt.

        The doubt is on the disk before there is a new secret.
        """
        try:
            lost = not self._secret.exists
        except OSError as error:
            raise StoreError(f"{NAMES_FILE}: {error.strerror}") from error
        if lost:
            with self._store.transaction() as tx:
                if tx.execute("SELECT 1 FROM charges WHERE device <> x'' LIMIT 1").fetchone():
                    set_property(tx, "doubt", 1)
        with self._store.transaction() as tx:
            self._drawn = self._secret.get(tx)
        return self._drawn
