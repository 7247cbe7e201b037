"""A device's one-time tokens: asked for in one week, spent in the next, one an upload.

An issuer learns who asks, and when; a collector learns when a token is spent.  So the two moments
have nothing to do with each other: tokens of the next week are fetched at a chance time of this
one, and a pass that fetches sends no upload.  Only a device that has none for this week yet, such
as a new one, fetches those at its first pass, and its first upload follows some hours later.

A sealed upload and its token stay together: the token is chosen when the upload is sealed, and its
id is the hash of that token.  A retry sends both again.

The keys of the issuer are those of the plan whose digest the application was built with, each with
a proof that its owner cannot tell requests apart.  Nothing else that an issuer says is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core import compact_json
from ..core.base64url import from_base64url
from ..core.dataclass import as_dict, dataclass, field
from ..core.epoch import DAY, HOUR, day_of, epoch_start
from ..core.errors import (
    EntropyError,
    HearsayError,
    InvalidParameterError,
    StoreError,
    TransportError,
)
from ..core.limits import MAX_REPORT_AGE
from ..core.randomness import Randomness, draw_bytes
from ..core.stats import Reason, Stats
from ..core.typing import TYPE_CHECKING, Any, Final
from ..storage.schema import property_of, set_property
from ..wire.private_token import (
    DIRECTORY_PATH,
    DIRECTORY_TYPE,
    EVERY,
    KIND,
    NONCE_SIZE,
    REQUEST_PATH,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    Plan,
    challenge_digest,
    key_id_of,
    modulus_of,
    read_plan,
    token_input,
    upload_id_of,
    week_of,
)
from .blind_rsa import blind, finalize, is_permutation
from .endpoint import checked_url, require_header
from .schedule import Schedule, number_of
from .transport import OK, Answer, RequestsTransport, is_ours

if TYPE_CHECKING:
    from ..privacy.consent import ConsentSwitch
    from ..storage.schema import Transaction
    from ..storage.store import Store

_MAX_ATTESTATION: Final = 4_096  # characters; a signed statement of an application store has fewer
MAX_RETRY: Final = 6 * HOUR  # seconds until an issuer that gave nothing is asked again
REFUSED_FOR: Final = DAY  # seconds until one that said no is
_TOO_MANY: Final = 429
_NO: Final = (401, 403)
_DIGEST_TEXT: Final = 43  # characters of a plan's digest
_NONE_LEFT: Final = (
    "no one-time tokens of this week are left for this identity: another installation has them"
)
_LAST, _DUE, _FAILED = "tokens_last", "tokens_due", "tokens_failed"

Attestation = str | Callable[[], str]


class IssuerError(HearsayError):
    """An issuer gave no tokens: it said no, or what it said cannot be believed."""


@dataclass(frozen=True)
class Issuer:
    """Who gives this application's devices their tokens, and by which keys.

    ``plan``: the digest that ``hearsay issuer-keys`` printed.  Two of them, by a comma, while keys
    are replaced.  ``attestation``: what shows the issuer who asks, or a function that returns it;
    it is sent to the issuer only.  ``required``: False sends what has no token without one.
    """

    url: str
    plan: str
    attestation: Attestation = field(repr=False)
    required: bool = True

    def as_settings(self) -> dict[str, object]:
        """Return what a program that ends at once hands to its child."""
        if callable(self.attestation):
            rule = "must be a text, as another process sends it"
            raise InvalidParameterError("attestation", "(hidden)", rule)
        return as_dict(self)

    def __post_init__(self) -> None:
        """Raise InvalidParameterError where an application's settings are wrong."""
        checked_url("url", self.url)
        if not self.plans or any(len(digest) != _DIGEST_TEXT for digest in self.plans):
            rule = "must be what hearsay issuer-keys prints, or two of these by a comma"
            raise InvalidParameterError("plan", self.plan, rule)
        if not callable(self.attestation):
            require_header("attestation", self.attestation, _MAX_ATTESTATION)

    @property
    def plans(self) -> tuple[str, ...]:
        """The digests of the plans whose keys are good."""
        return tuple(digest.strip() for digest in self.plan.split(",") if digest.strip())

    def attestation_text(self) -> str:
        """Return what shows the issuer who asks.  Raises InvalidParameterError."""
        text = self.attestation() if callable(self.attestation) else self.attestation
        require_header("attestation", text, _MAX_ATTESTATION)
        return text


class TokenStore:
    """The tokens of a device, in its database.  One thread at a time fills it."""

    def __init__(
        self,
        issuer: Issuer,
        app: str,
        *,
        store: Store,
        stats: Stats,
        clock: Callable[[], float],
        consent: ConsentSwitch,
        randomness: Randomness,
        transport: RequestsTransport | None = None,
    ) -> None:
        """Keep tokens of *issuer* for *app* in *store*; *randomness* draws what hides them.

        Args: transport: another way to the issuer, in tests.
        """
        self._issuer, self._app, self._randomness = issuer, app, randomness
        self._store, self._stats, self._clock, self._consent = store, stats, clock, consent
        self._transport = transport or RequestsTransport(issuer.url, "-")

    @property
    def required(self) -> bool:
        """Whether nothing is sealed without a token."""
        return self._issuer.required

    def count(self, tx: Transaction, day: int) -> int:
        """Return how many uploads that are sealed on epoch *day* could have a token."""
        (count,) = tx.execute(
            "SELECT count(*) FROM tokens WHERE week = ? AND sealed = 0", (week_of(day),)
        ).fetchone()
        return int(count)

    def spend(self, tx: Transaction, day: int) -> tuple[bytes, bytes] | None:
        """Return id and token of the upload that is sealed on epoch *day*; None: none is left."""
        unspent = "SELECT id, token FROM tokens WHERE week = ? AND sealed = 0 LIMIT 1"
        row = tx.execute(unspent, (week_of(day),)).fetchone()
        if row is None:
            return None
        tx.execute("UPDATE tokens SET sealed = 1 WHERE id = ?", (row[0],))
        return bytes(row[0]), bytes(row[1])

    def put_back(self, tx: Transaction, upload_id: bytes) -> None:
        """Let the token of an upload that nobody has seen pay for another one."""
        tx.execute("UPDATE tokens SET sealed = 0 WHERE id = ?", (upload_id,))

    def fill(self, schedule: Schedule, timeout: float, *, scheduled: bool) -> bool:
        """Fetch tokens if it is time to, in place of an upload; return whether it was.

        Args: scheduled: the pass is of the *schedule*, which plans another one for the upload.
        Raises: StoreError, EntropyError: what was fetched before is kept.
        """
        now = self._clock()
        with self._store.transaction() as tx:
            schedule.load(tx)
            wait = schedule.wait(now) if scheduled else schedule.backoff(now)
            week = None if wait > 0 or not self._consent.may_send_now() else self.due(tx, now)
            if week is None:
                return False
            if property_of(tx, _FAILED):  # else a device that sends seldom would only ask
                set_property(tx, _FAILED, 0)
                return False
            if scheduled and not schedule.claimed:
                schedule.plan(tx, now)
        error: Exception | None = None
        got = 0
        try:
            for upload_id, token in self._fetch(week, timeout):
                got += 1
                with self._store.transaction() as tx:
                    if not self._consent.may_send_now():
                        return True
                    tx.execute("INSERT INTO tokens VALUES (?, ?, ?, 0)", (upload_id, week, token))
        except (StoreError, EntropyError):
            raise
        except Exception as failure:  # noqa: BLE001 - such as of the application's attestation
            error = failure
        finally:
            self._transport.hang_up()
        if error is None and not got:
            self._stats.add(Reason.REFUSED)
            self._stats.warn("tokens", _NONE_LEFT)
        self._settle(week, error)
        return True

    def _settle(self, week: int, error: Exception | None) -> None:
        """Count what came of asking for tokens of *week*, and plan when they are asked for next."""
        now = self._clock()
        if isinstance(error, IssuerError | InvalidParameterError):
            self._stats.add(Reason.REFUSED)
            self._stats.warn("tokens", f"no one-time tokens: {error}")
        elif error is not None:
            self._stats.fail(error)
        with self._store.transaction() as tx:
            if error is None:
                self._complete(tx, week, now)
            else:
                self._postpone(tx, now, error)

    def due(self, tx: Transaction, now: float) -> int | None:
        """Return the week whose tokens are to be fetched now; None if none are."""
        last, due = (number_of(property_of(tx, key)) for key in (_LAST, _DUE))
        week = week_of(day_of(now))
        if last > week or (now < due <= now + 2 * 7 * DAY):
            return None  # a time beyond that was planned by a clock that was ahead
        return week if last < week else week + 1

    def _fetch(self, week: int, timeout: float) -> Iterator[tuple[bytes, bytes]]:
        """Yield tokens of *week*, each with the id of its upload, as long as the issuer gives some.

        Raises: TransportError, IssuerError, InvalidParameterError, EntropyError, and what the
            application's attestation raises.
        """
        end = self._clock() + timeout
        plan, key_id, modulus = self._directory(week, timeout)
        more = {
            "Content-Type": REQUEST_TYPE,
            "Accept": RESPONSE_TYPE,
            "Authorization": f"Bearer {self._issuer.attestation_text()}",
        }
        head = KIND.to_bytes(2, "big") + key_id[-1:]
        digest = challenge_digest(plan.issuer, self._app, week)
        for _ in range(plan.tokens):
            nonce = draw_bytes(self._randomness, NONCE_SIZE)
            message = token_input(nonce, digest, key_id)
            blinding = blind(message, modulus, self._randomness)
            body = head + blinding.blinded
            left = min(timeout, end - self._clock())
            if left <= 0:
                raise TransportError("issuer: no time is left for more tokens")
            answer = self._transport.exchange(REQUEST_PATH, body, left, more)
            if answer.status == _TOO_MANY and is_ours(answer):
                return  # it has given all that it gives; any other is of a proxy's limit
            _require_ok(answer, RESPONSE_TYPE)
            signature = finalize(message, modulus, blinding.inverse, answer.body)
            if signature is None:
                raise IssuerError("token: is no signature by the key of its week")
            token = message + signature
            yield upload_id_of(token), token

    def _complete(self, tx: Transaction, week: int, now: float) -> None:
        """Note that the issuer has been asked for *week*, and plan when it is asked again.

        That is at any moment of the week before the one for which there are no tokens yet.
        """
        this = week_of(day_of(now))
        begin, end = (epoch_start(EVERY, max(week, this) + place) for place in range(2))
        begin = max(begin, int(now)) if week == this else begin
        set_property(tx, _LAST, week)
        set_property(tx, _DUE, begin + self._chance(max(end - begin, 1)))
        oldest = week_of(day_of(now) - MAX_REPORT_AGE) - 1
        tx.execute("DELETE FROM tokens WHERE week < ?", (oldest,))

    def _postpone(self, tx: Transaction, now: float, error: Exception) -> None:
        """Ask again later: within some hours, and after a no within some days."""
        set_property(tx, _FAILED, 1)
        refused = isinstance(error, IssuerError)
        wait = REFUSED_FOR if refused else HOUR
        set_property(tx, _DUE, now + wait + self._chance(REFUSED_FOR if refused else MAX_RETRY))

    def _directory(self, week: int, timeout: float) -> tuple[Plan, bytes, int]:
        """Return the plan, and id and modulus of its key of *week*, of which there is a proof."""
        answer = self._transport.exchange(DIRECTORY_PATH, None, timeout, {"Accept": DIRECTORY_TYPE})
        _require_ok(answer, DIRECTORY_TYPE)
        try:
            document: dict[str, Any] = compact_json.loads(answer.body.decode("ascii"))
            plan = read_plan(document["hearsay-plan"])
            if plan.digest not in self._issuer.plans:
                raise IssuerError("plan: is another than the application was built with")
            key_id = plan.key_id(week)
            for entry in document["token-keys"]:
                key = from_base64url(entry["token-key"])
                if key_id_of(key) == key_id:
                    roots = (from_base64url(root) for root in entry["hearsay-proof"])
                    modulus = modulus_of(key)
                    if is_permutation(modulus, tuple(int.from_bytes(r, "big") for r in roots)):
                        return plan, key_id, modulus
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise IssuerError("directory: is none") from None
        raise IssuerError(f"plan.week={week}: has no key that is proved to be good")

    def _chance(self, ceiling: int) -> float:
        return self._randomness.uniform(1_000 * ceiling) / 1_000


def _require_ok(answer: Answer, kind: str) -> None:
    """Return if the issuer gave what was asked for.

    Raises: IssuerError: it said no.  TransportError: it, or what stands before it, cannot now.
    """
    if answer.status in _NO:
        raise IssuerError(f"issuer: said no with status {answer.status}; check the attestation")
    if answer.status != OK or answer.content_type.partition(";")[0].strip().lower() != kind:
        raise TransportError(f"issuer: answered with status {answer.status}")
