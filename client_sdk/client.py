"""The client: what an application holds.  Recording and uploading never raise into it.

In a dry run everything happens but the sending, and what would be sent can be read.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType

from .core.errors import InvalidParameterError
from .core.paths import PathOrStr, RegistryFile
from .core.stats import Reason
from .core.typing import TYPE_CHECKING, Final
from .privacy.caps import DEFAULT_CAPS, Caps
from .privacy.consent import Consent, ConsentLike, Level, OptOuts
from .recording.background import Mode, ModeLike

if TYPE_CHECKING:
    from .core.randomness import Randomness
    from .learning.model import ModelSource
    from .recording.history import ReportedValue
    from .recording.inbox import OnReport
    from .registry.contract import Registry
    from .storage.trusted_clock import Uptimes
    from .upload.tokens import Issuer
    from .upload.transport import Transport
    from .upload.uploader import Delivery

FLUSH_TIMEOUT: Final = 30.0  # seconds; three slow answers


class Client:
    """Records values of registered metrics and uploads perturbed reports of them.

    Thread-safe, and safe to use after a fork.  The constructor, ``set_consent`` and ``explain``
    raise on wrong arguments; ``record``, ``flush`` and ``close`` never raise, but for ``record`` of
    a ``strict`` client: each refusal and failure is counted in ``stats``.

    In background mode ``record`` adds the value up in memory, at any rate.  A daemon thread writes
    the first one at once, further ones four times a second at most, and uploads by a random
    schedule.  It is begun by the first value of the process, by ``watch``, or by a denial that has
    something to delete: never by the constructor of a client that may record, so none is there when
    a server forks its workers.  A forked child begins with nothing and has a thread of its own.  In
    the master of uWSGI, and in its workers without ``enable-threads``, there is none: ``record``
    writes, in the workers four times a second at most.  At the end of the process what waits is
    written down.

    In manual mode there is no thread: ``record`` writes at once, ``flush`` sends.
    """

    def __init__(
        self,
        endpoint: str,
        write_key: str,
        registry: Registry | RegistryFile,
        *,
        consent: ConsentLike,
        data_dir: PathOrStr | None,
        segment: Mapping[str, str] | None = None,
        caps: Caps = DEFAULT_CAPS,
        mode: ModeLike = Mode.BACKGROUND,
        dry_run: bool = False,
        strict: bool = False,
        remember: bool = False,
        on_report: OnReport | None = None,
        transport: Transport | None = None,
        relay: str | None = None,
        relay_key: str | None = None,
        tokens: Issuer | None = None,
        opt_outs: OptOuts | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Uptimes | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        """Prepare to record; nothing is sent yet, and no file is made.

        Args:   endpoint, write_key: the collector, unused if *transport* is given.
                registry: a registry or the path of its file.
                consent: what the user has said; denied erases what an earlier run left.
                data_dir: a folder of this application and user, settled now: a later chdir moves
                nothing.  None keeps all in memory, which forgets the ledger, and so the caps, when
                the process ends.
                segment: dimension to value, as declared in the registry.
                caps: the most epsilon to spend on this person.
                mode: "background"; "manual" for programs that want no thread.  For those that end
                at once there is ``command``.
                dry_run: keep all in memory and send nothing; ``withheld`` has what would be sent.
                strict: for development: ``record`` raises where the registry knows no such metric
                or value, or the metric has expired; in production these are counted only.
                remember: keep, in memory, what was true of the last reports, for ``history``.
                on_report: sees each report before it is queued; False drops it, charged all the
                same.  It must not record.
                relay: the URL of a relay, by which all is sent, one report at a time, so that the
                collector learns no address.  relay_key: the collector's, compiled into the
                application: what ``hearsay oblivious-key`` prints.
                tokens: who gives one-time tokens, of which each upload then spends one.
                opt_outs: who may say no above the application; None: the environment, the policy
                of the machine and the user's setting in *data_dir*.  Only simulations need others.
                They also know whether a machine runs the application: a dry run records there.
                clock: Unix time in seconds.  uptime, randomness: the operating system's, unless a
                test.
        Raises: InvalidParameterError, RegistryError.
        """
        from .recording.engine import Engine
        from .recording.options import Options
        from .upload.transport import WithheldUploads

        if transport is not None and relay is not None:
            raise InvalidParameterError("relay", relay, "cannot be beside a transport of your own")
        self._withheld = WithheldUploads() if dry_run else None
        self._engine = Engine(
            Options(
                endpoint=endpoint,
                write_key=write_key,
                registry=registry,
                consent=consent,
                data_dir=data_dir,
                segment=segment,
                caps=caps,
                mode=mode,
                dry_run=dry_run,
                strict=strict,
                remember=remember,
                on_report=on_report,
                transport=self._withheld or transport,
                relay=relay,
                relay_key=relay_key,
                tokens=tokens,
                opt_outs=opt_outs,
                clock=clock,
                uptime=uptime,
                randomness=randomness,
            )
        )
        self._way = relay, None if tokens is None else tokens.url
        # at the end of the process or of this object, whichever comes first
        self._end = weakref.finalize(self, self._engine.exit)

    def record(self, name: str, value: object) -> None:
        """Report *value* of the metric called *name*, at most once in each of its epochs.

        If the metric has an ``aggregate``, all values of an epoch are added up, and reported when
        it is over.

        Raises: UnknownMetricError, InvalidValueError, ExpiredMetricError: of a ``strict`` client
                only, and no error shows the value.
        """
        self._engine.record(name, value)

    def flush(self, timeout: float = FLUSH_TIMEOUT) -> Delivery:
        """Send what waits, once, and wait for no answer after *timeout* seconds.

        Returns what is left: ``complete`` if that is nothing, else ``wait`` has the seconds until
        a further flush may send.  After a failure nothing is sent until the waiting time, which the
        collector may lengthen up to a day, is over; and an upload that was tried before is repeated
        in a flush of its own.
        """
        return self._engine.flush(timeout)

    def watch(self) -> None:
        """Say that this process is at work, though it may never record anything.

        Starts the thread, so that metrics with ``otherwise`` report of each epoch from now on.  The
        first value of the process does the same; without either, its end does, for its last epoch.
        """
        self._engine.watch()

    def close(self, timeout: float | None = None) -> None:
        """Write down what is queued, send what is due, and close the database.

        Waits for a second at most, or *timeout* seconds; what is on the disk by then is sent by the
        next run.  A client that lived for less than a minute sends one upload, if one is due; one
        that lived longer leaves it to the schedule, so that its end does not show.  In manual mode,
        and without a *data_dir*, all is sent now, if the last try went well.
        A flush of another thread that still waits for its answer leaves its upload for next time.
        """
        self._engine.close(timeout)
        self._end.detach()

    async def aflush(self, timeout: float = FLUSH_TIMEOUT) -> Delivery:
        """Do what ``flush`` does in a thread of the running loop's, so that the loop goes on.

        Cancelled, it ends at once; what the thread has begun it ends by itself, and an upload that
        is on its way counts once.
        """
        from asyncio import to_thread  # 40 ms that programs without a loop must not pay

        return await to_thread(self.flush, timeout)

    async def aclose(self, timeout: float | None = None) -> None:
        """Do what ``close`` does in a thread of the running loop's.

        Cancelled, it ends at once, and the client is closed all the same.
        """
        from asyncio import get_running_loop, shield

        await shield(get_running_loop().run_in_executor(None, self.close, timeout))

    def set_consent(self, consent: ConsentLike) -> None:
        """Obey a new answer of the user from now on; denied erases all that waits.

        In background mode the thread erases, so that nobody waits for it.
        Raises: InvalidParameterError: not a Consent; the old answer stands.
        """
        self._engine.set_consent(consent)

    @property
    def registry(self) -> Registry:
        """The registry by which values are recorded."""
        return self._engine.registry

    @property
    def consent(self) -> Consent:
        """The consent in force: denied if anybody above the application has opted out.

        Looks for that: some 20 µs for three files, none of which need exist.
        """
        self._engine.erasure.refresh()
        return self._engine.switch.in_force

    @property
    def consent_level(self) -> Level:
        """Whose word is in force; see ``opt_out``.  Looks for it as ``consent`` does."""
        self._engine.erasure.refresh()
        return self._engine.switch.said_by

    def stats(self) -> Mapping[str, int]:
        """Return the counts by reason of this process, since the client was made or it was forked.

        See ``stats.Reason``.
        """
        counts = self._engine.counts()
        if self._withheld is not None:
            withheld, counts[Reason.UPLOADED] = counts[Reason.UPLOADED], 0
            counts[Reason.WITHHELD] = withheld
        return counts

    def history(self) -> list[ReportedValue]:
        """Return the last reports of this process with what was true; empty unless ``remember``."""
        if self._engine.history is None:
            return []
        self._engine.erasure.refresh()
        return self._engine.history.reports()

    def withheld(self) -> tuple[bytes, ...]:
        """Return the uploads that a dry run would have sent, as they would be on the wire."""
        return () if self._withheld is None else tuple(self._withheld.bodies)

    def explain(self, name: str) -> str:
        """Return what the metric called *name* asks, sends and costs, in plain words.

        Raises: UnknownMetricError.
        """
        from .privacy.wording import explain, who_sees_the_address

        text = explain(self._engine.registry.metric(name), self._engine.caps)
        seen = " ".join(who_sees_the_address(*self._way))
        return f"{text}\nWho sees your internet address: {seen}"

    def recommend(
        self, name: str, factors: ModelSource, count: int = 5, *, likes: object
    ) -> list[str]:
        """Return at most *count* items for who *likes* these, by factors of the metric *name*.

        Computed here from the values that the application gives; nothing is recorded, kept or sent.

        Args:   factors: the file that ``hearsay learn factors`` wrote, its bytes, or its model.
        Raises: UnknownMetricError, InvalidParameterError, InvalidValueError.
        """
        from .learning.factors import recommend

        return recommend(self._engine.registry.metric(name), factors, count, likes)

    def notice(self, *, ascii: bool = False) -> str:
        """Return a text to ask the user for consent with.

        Args: ascii: in letters that every terminal can print, "epsilon" for ε.
        """
        from .privacy.wording import in_ascii, notice, with_address

        text = with_address(notice(self._engine.registry, self._engine.caps), *self._way)
        return in_ascii(text) if ascii else text

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
