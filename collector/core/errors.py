"""Every error the collector raises.

CollectorError
├── ConfigError (ValueError)              a setting breaks a rule; a secret is never shown
├── StorageUnavailableError (OSError)     the store did not answer; whether it acted is not known
│   ├── NotPreparedError                  the store answers, but `hearsay init` has not run on it
│   ├── NotReplicatedError                no replica has confirmed the change in time
│   ├── NotLoggedError                    the store has not written its log in time
│   └── RefusedByStoreError               the store answers with an error of its own, such as NOPERM
├── StorageFullError (OSError)            the store takes no more writes; nothing was changed
├── UnsafeStoreError (RuntimeError)       the store could lose acknowledged uploads; lists why
│   ├── ReplacedStoreError                it was emptied, or is another than at the start
│   └── ClockError                        its clock and this machine's do not agree
├── ForgottenUploadError                  the store would not remember its id; nothing was stored
├── TallyOverflowError (OverflowError)    a counter would leave its range; nothing was changed
├── ClassEndedError                       the day of a fold is over; nothing was changed
├── DamagedIndexError (ValueError)        what is known of a document cannot be read
├── DamagedTallyError (ValueError)        a stored tally is not what folds leave behind
├── CorruptEntryError (ValueError)        a stored entry is not what was written
├── RequestError (ValueError)             a request is wrong; nothing was stored
│   ├── MalformedUploadError              the body is not an upload
│   ├── ExpiredUploadError                sealed so long ago that its id may be forgotten
│   ├── FutureUploadError                 sealed on a day to come
│   ├── BodyTooLargeError                 longer than the key allows, as sent or inflated
│   ├── UnsupportedTypeError              a type or encoding that is not read
│   ├── CapsuleError                      a capsule that no key of ours opens, for any reason
│   ├── UnknownRequestError               a capsule holds a request that none may hold
│   ├── UnknownDocumentError              there is no such board, question, note or link
│   ├── ChangedDocumentError              somebody else has changed it meanwhile
│   ├── UnknownLinkError                  a shared link opens nothing
│   └── QueryError                        a parameter cannot be used
│       ├── AmbiguousMetricError          several apps have a metric of this name
│       └── PrunedError                   all that a question is about was deleted
├── CredentialError (ValueError)          what a key or token is to allow could not be meant
├── ExclusionError (ValueError)           what is to be taken out of answers, or back, cannot be
├── UnauthorizedError (PermissionError)   no key or token, or one that is not known
├── ForbiddenError (PermissionError)      a known token, which does not open this
├── TokenError (PermissionError)          no one-time token, or one that is not good for this
├── QuotaExhaustedError                   the key has sent all that it may send today
├── ManyTalliesError                      the key has begun as many tallies as it may today
├── TooFastError                          a key, a log-in or a link is used too often
├── OverloadedError                       the collector takes no more now; nothing was stored
├── BusyError                             too many large questions at once
├── SlowBodyError                         the body did not arrive in time; nothing was stored
├── MalformedHeadError (ValueError)       the head of a request can be read in two ways
├── ArchiveError (ValueError)             an archive is not this store's, or not what was written
├── ChildError (RuntimeError)             a child process ended, or did not start in time
├── AnswerError (ValueError)              a collector refused to answer; says where and why
├── ForeignFormError (ValueError)         a document from outside is none of Hearsay's
├── MissingPackageError (ImportError)     a package that this needs is not installed
└── UnreachableError (OSError)            no collector answered
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from client_sdk.core.errors import HearsayError

# What code that expects our form makes of another one; everything else is a fault of ours.
FAULTS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


E = TypeVar("E", bound="CollectorError")


class CollectorError(Exception):
    """Root of the errors of collector.

    A request that ends in one is answered with its *status*, and with its *slug* and *title* in a
    problem document; a class has those of its base unless it names its own.
    """

    is_told = False  # whether operators know already, so that no request logs it once more
    status, slug, title = 500, "", ""  # without a slug the failure is ours, and its log says what


def answered(status: int, slug: str, title: str) -> Callable[[type[E]], type[E]]:
    """Say how a request is answered that ends in an error of the class, or of one below it."""

    def of(kind: type[E]) -> type[E]:
        kind.status, kind.slug, kind.title = status, slug, title
        return kind

    return of


class ConfigError(CollectorError, ValueError):
    """A setting breaks a rule.  Reads ``name=value: rule``."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        """Keep the parts as data.  Callers pass ``***`` as *value* of a secret."""
        self.name, self.value, self.rule = name, value, rule
        super().__init__(f"{name}={value}: {rule}")


@answered(503, "store-unavailable", "The store does not answer; try again")
class StorageUnavailableError(CollectorError, OSError):
    """The store did not answer in time.  Whether it acted is not known: repeat the call."""


class NotPreparedError(StorageUnavailableError):
    """The store lacks the function library or its consumer groups."""


class NotLoggedError(StorageUnavailableError):
    """The store has not written its log in time: what was changed may go with its process."""


class NotReplicatedError(StorageUnavailableError):
    """The change is made, but no replica has confirmed it: a failover could undo it."""


class RefusedByStoreError(StorageUnavailableError):
    """The store answered with an error that we do not expect.  Only its ``code`` is kept."""

    def __init__(self, code: str) -> None:
        """Leave out the rest of the answer, which may repeat the arguments of the command."""
        self.code = code
        super().__init__(f"store: answers {code}")

    @property
    def lacks_right(self) -> bool:
        """Whether our user of the store may not do what was asked, whatever it was asked for."""
        return self.code == "NOPERM"


@answered(503, "store-full", "The store is full; try again later")
class StorageFullError(CollectorError, OSError):
    """The store refuses writes: out of memory, or it cannot write its log."""


@answered(503, "store-unsafe", "The store is not safe to use now; try again later")
class UnsafeStoreError(CollectorError, RuntimeError):
    """The store could lose acknowledged uploads.  ``reasons`` lists every fault."""

    def __init__(self, reasons: Sequence[str]) -> None:
        """Keep all *reasons*, each ``setting=value: rule``, so that a server is mended at once."""
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


class ReplacedStoreError(UnsafeStoreError):
    """The store, or a shard of it, is not of the generation with which this process began."""

    def __init__(self, generation: str = "") -> None:
        """Tell of the *generation* that is there now; "" where there is none."""
        rule = "must be that with which this process began; docs/operate/operate.md#replaced"
        super().__init__([f"store.generation={generation or 'gone'}: {rule}"])


class ClockError(UnsafeStoreError):
    """Clocks do not agree, so nothing that depends on the time is decided."""

    def __init__(self, clock: str, seconds: float, rule: str) -> None:
        """Say by how many *seconds* which *clock* is off."""
        super().__init__([f"{clock}={seconds:.0f} seconds: {rule}"])


@answered(503, "store-clock", "The store's clock is wrong; try again later")
class ForgottenUploadError(CollectorError):
    """By the store's clock the upload's id is forgotten already, so some clock is wrong."""


class TallyOverflowError(CollectorError, OverflowError):
    """A counter would leave the range in which it is exact.  Nothing was changed."""


class ClassEndedError(CollectorError):
    """The class of lateness of a fold has ended meanwhile.  Nothing was changed: classify anew."""


@answered(500, "damaged-tally", "The stored counts of this metric are damaged")
class DamagedTallyError(CollectorError, ValueError):
    """A stored tally is not what folds leave behind, so nothing is said about its metric."""


@answered(500, "damaged-index", "The index of documents is damaged; nothing is saved")
class DamagedIndexError(CollectorError, ValueError):
    """What is known of a document cannot be read, so what it occupies is not either."""


class CorruptEntryError(CollectorError, ValueError):
    """A stored entry fails its checksum or its form.  Its bytes are never shown."""


class RequestError(CollectorError, ValueError):
    """A request is wrong; nothing was stored.  What was sent is never repeated."""


@answered(400, "malformed-upload", "The body is not an upload")
class MalformedUploadError(RequestError):
    """The body is not an upload."""


@answered(410, "upload-expired", "The upload is too old")
class ExpiredUploadError(RequestError):
    """Sealed so long ago that its id may be forgotten, so it could be counted twice."""


@answered(422, "upload-in-future", "The upload is dated in the future")
class FutureUploadError(RequestError):
    """Sealed on a day to come, by a clock that is wrong."""


@answered(413, "body-too-large", "The body is too large")
class BodyTooLargeError(RequestError):
    """The body is longer than the key allows, as sent or inflated."""


@answered(415, "unsupported-type", "The body has an unsupported content type")
class UnsupportedTypeError(RequestError):
    """The body has a type or an encoding that is not read."""


@answered(422, "capsule", "The capsule cannot be opened")
class CapsuleError(RequestError):
    """A capsule that no key of ours opens.  It says the same whatever is wrong with it."""

    def __init__(self) -> None:
        """Say what can be done, to whoever runs the relay or builds the application."""
        super().__init__(
            "capsule: must be sealed to a key of this collector; the application's relay_key is"
            " what hearsay oblivious-key prints, and the relay must carry messages as they are"
        )


@answered(404, "unknown-request", "Not allowed inside a capsule")
class UnknownRequestError(RequestError):
    """A capsule holds a request that cannot be made in one."""


@answered(404, "unknown-document", "There is nothing at this address")
class UnknownDocumentError(RequestError):
    """There is no such document, or it is not for whoever asks.  Its name is not repeated."""

    def __init__(self, kind: str) -> None:
        """Say of which *kind*, and where those are that there are."""
        super().__init__(f"{kind}: there is none of this address; Boards lists those there are")


@answered(409, "document-changed", "Somebody else has changed this meanwhile")
class ChangedDocumentError(RequestError):
    """Somebody else has changed a document since it was read.  Nothing was changed."""

    def __init__(self, kind: str) -> None:
        """Say of which *kind*, and how to go on."""
        rule = "was changed or deleted by somebody else meanwhile; open it again and repeat"
        super().__init__(f"{kind}: {rule}")


@answered(404, "unknown-link", "This link opens nothing")
class UnknownLinkError(RequestError):
    """A shared link opens nothing.  Why is not said: what never was and what ended are alike."""

    def __init__(self) -> None:
        """Say what may be the reason, and how to go on."""
        super().__init__(
            "It has ended, was revoked, or is not whole. Copy the whole address once more; if it"
            " still opens nothing, ask the sender for a new link."
        )


@answered(400, "bad-parameter", "A parameter cannot be used")
class QueryError(RequestError):
    """A question cannot be answered as it is asked.  Reads ``place: rule``.

    The place is a parameter of the address, or a path in the document: ``filters.0.1``.
    """

    def __init__(self, place: str, rule: str, value: object = None) -> None:
        """Keep the parts as data.

        Args: rule: what would work.  value: what stands at the place, where it may be shown.
        """
        self.place, self.rule = place, rule
        super().__init__(f"{place}: {rule}" if value is None else f"{place}={value}: {rule}")


class AmbiguousMetricError(QueryError):
    """Several apps have a metric of this name.  ``addresses`` are those to choose from."""

    def __init__(self, name: str, addresses: Sequence[str]) -> None:
        self.name, self.addresses = name, tuple(addresses)
        rule = "several apps have this metric: write " + " or ".join(addresses)
        super().__init__("metrics", rule, name)


@answered(410, "pruned", "The reports were deleted by an operator")
class PrunedError(QueryError):
    """All that a question is about was deleted by an operator."""


@answered(401, "unauthorized", "A key or token is needed")
class UnauthorizedError(CollectorError, PermissionError):
    """No key or token, or one that is not known."""


class CredentialError(CollectorError, ValueError):
    """What a key or token is to allow could not be meant.  Reads ``field: rule``."""

    def __init__(self, name: str, rule: str) -> None:
        """Keep the parts as data; the value, which may be a secret by mistake, is left out."""
        self.name, self.rule = name, rule
        super().__init__(f"{name}: {rule}")


class ExclusionError(CollectorError, ValueError):
    """What is to be taken out of answers, or put back, cannot be; nothing was changed."""


@answered(403, "forbidden", "The token does not allow this")
class ForbiddenError(CollectorError, PermissionError):
    """A known token, which does not open this route."""


@answered(403, "token-needed", "A one-time token is needed")
class TokenError(CollectorError, PermissionError):
    """No one-time token, or one that is not good for this upload.  Nothing was stored."""


@answered(429, "quota-exhausted", "The key has sent all it may send today")
class QuotaExhaustedError(CollectorError):
    """The key has sent all the reports that it may send on this day."""


@answered(429, "many-tallies", "Daily limit of new tallies reached for this key")
class ManyTalliesError(CollectorError):
    """The key has begun as many new tallies as it may on this day.  Nothing was stored."""


@answered(429, "too-fast", "Too much in a short time; try again in a minute")
class TooFastError(CollectorError):
    """A key, a log-in or a shared link is used too often for now.  Nothing was stored."""


@answered(503, "overloaded", "The collector is overloaded; try again later")
class OverloadedError(CollectorError):
    """The collector is too far behind, or too busy; nothing was stored."""

    is_told = True


@answered(429, "busy", "Too many large queries are running")
class BusyError(CollectorError):
    """Too many large questions at once.  Asking again later may be answered."""


@answered(408, "slow-body", "The body did not arrive in time; send again")
class SlowBodyError(CollectorError):
    """The body of a request did not arrive in time.  Nothing was stored."""


class MalformedHeadError(CollectorError, ValueError):
    """A head that two readers could take for two requests.  The way is at fault, not the body."""


class ArchiveError(CollectorError, ValueError):
    """A folder is not the archive of this store, or a file in it is not what was written."""


class ChildError(CollectorError, RuntimeError):
    """A child process ended, or did not start in time.  Shows its last words."""


class AnswerError(CollectorError, ValueError):
    """A collector refused to answer.  Keeps its problem document as data."""

    def __init__(self, status: int, problem: Mapping[str, object], url: str = "") -> None:
        """Keep *status* and *problem*, as RFC 9457 has it.

        Args: url: of the collector, where the message shall say which was asked.
        """
        self.status, self.problem = status, problem
        said = {name: text for name, text in problem.items() if isinstance(text, str)}
        self.title = said.get("title", "The collector refused")
        self.detail = said.get("detail", "")
        faults = problem.get("errors")
        self.faults: tuple[Mapping[str, str], ...] = tuple(
            fault
            for fault in (faults if isinstance(faults, list) else ())
            if isinstance(fault, dict)
            and "detail" in fault
            and all(isinstance(text, str) for text in fault.values())
        )
        where = f"asked of {url}" if url else ""
        super().__init__(": ".join(filter(None, (self.title, where, self.detail))))


class ForeignFormError(CollectorError, ValueError):
    """A document from outside is none of Hearsay's."""


class MissingPackageError(CollectorError, ImportError):
    """A package that is not installed is needed for this; the message says how to get it."""


class UnreachableError(CollectorError, OSError):
    """No collector answered.  Nothing changes by asking, so ask again."""


@contextmanager
def foreign(place: str) -> Iterator[None]:
    """Say of what *place* holds that it is not ours, where its form is another one.

    Raises: ForeignFormError: in place of what reading it raised; our own errors stay.
    """
    try:
        yield
    except (CollectorError, HearsayError):
        raise
    except FAULTS as error:
        raise ForeignFormError(f"{place}: has another form than Hearsay's") from error


def unread(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file cannot be read, without anything of what it holds."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return "cannot be read as UTF-8 text"
