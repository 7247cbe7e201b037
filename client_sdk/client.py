"""The client: what an application holds.  Recording and uploading never raise into it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final

from . import outbox
from .consent import Consent, ConsentSwitch
from .ledger import Caps, Ledger
from .outbox import Outbox
from .randomness import Randomness, system_randomness
from .recorder import Recorder
from .registry import PathOrStr, Registry
from .stats import Reason, Stats, reason_of
from .store import Store
from .transport import RequestsTransport, Transport
from .uploader import Uploader

DEFAULT_CAPS: Final = Caps()
FLUSH_TIMEOUT: Final = 30.0  # seconds; three slow answers
CLOSE_TIMEOUT: Final = 1.0  # seconds; an application that ends must not hang on its telemetry


class Client:
    """Records values of registered metrics and uploads perturbed reports of them.

    Thread-safe.  The constructor and ``set_consent`` raise on wrong arguments; ``record``,
    ``flush`` and ``close`` never raise: each refusal and failure is counted in ``stats``.
    """

    def __init__(
        self,
        endpoint: str,
        write_key: str,
        registry: Registry | PathOrStr,
        *,
        consent: Consent | str,
        data_dir: PathOrStr | None,
        segment: Mapping[str, str] | None = None,
        caps: Caps = DEFAULT_CAPS,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.time,
        randomness: Randomness | None = None,
    ) -> None:
        """Prepare to record; nothing is opened and nothing is sent yet.

        Args:   endpoint, write_key: the collector, unused if *transport* is given.
                registry: a registry or the path of its file.
                consent: what the user has said; denied wipes what an earlier run left.
                data_dir: a folder of this application and user; None keeps all in memory, which
                forgets the ledger, and so the caps, when the process ends.
                segment: dimension to value, as declared in the registry.
                caps: the most epsilon to spend on this person.
                clock: Unix time in seconds.  randomness: the operating system's, unless a test.
        Raises: InvalidParameterError, RegistryError.
        """
        chosen = registry if isinstance(registry, Registry) else Registry.from_file(registry)
        segment = {} if segment is None else segment
        chosen.require_segment(segment)
        self._switch = ConsentSwitch(Consent.of(consent))
        self._clock, self._stats, self._store = clock, Stats(), Store(data_dir)
        self._closed = False
        drawn = system_randomness() if randomness is None else randomness
        sender = RequestsTransport(endpoint, write_key) if transport is None else transport
        self._recorder = Recorder(
            chosen, self._store, Ledger(caps), Outbox(segment), drawn, self._switch
        )
        self._uploader = Uploader(self._store, sender, self._switch, self._stats, clock, drawn)
        self._wipe_if_denied()

    def record(self, name: str, value: object) -> None:
        """Report *value* of the metric called *name*, at most once in each of its epochs."""
        with self._counting():
            if self._closed:
                self._stats.add(Reason.CLOSED)
                return
            dropped = self._recorder.record(name, value, self._clock())
            self._stats.add(Reason.RECORDED)
            if dropped:
                self._stats.add(Reason.OUTBOX_FULL, dropped)

    def flush(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Send what waits, once, and wait for no answer after *timeout* seconds.

        After a failure nothing is sent until the waiting time, which the collector may lengthen
        up to a day, is over.
        """
        self._wipe_if_denied()
        with self._counting():
            if not self._closed and self._store.exists:
                self._uploader.flush(timeout)

    def close(self) -> None:
        """Send what waits, if the last try went well, and close the database.

        A flush of another thread that still waits for its answer leaves its upload for next time.
        """
        if not self._uploader.failing:
            self.flush(CLOSE_TIMEOUT)
        with self._counting():
            self._closed = True
            self._store.close()

    def set_consent(self, consent: Consent | str) -> None:
        """Obey a new answer of the user from now on; denied wipes all that waits.

        Raises: InvalidParameterError: not a Consent; the old answer stands.
        """
        self._switch.consent = Consent.of(consent)
        self._wipe_if_denied()

    def stats(self) -> Mapping[str, int]:
        """Return the counts by reason since this client was made; see ``stats.Reason``."""
        return self._stats.counts()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _wipe_if_denied(self) -> None:
        with self._counting():
            if self._switch.consent is not Consent.DENIED or not self._store.exists:
                return
            try:
                self._store.open()
                with self._store.transaction() as tx:
                    wiped = outbox.wipe(tx)
                self._stats.add(Reason.REVOKED, wiped)
                self._store.scrub()  # even if nothing was wiped: an earlier scrub may have failed
            finally:
                if self._closed:
                    self._store.close()

    @contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - an app must not fail because its telemetry does
            self._stats.add(reason_of(error))
