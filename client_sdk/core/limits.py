"""Limits shared by device and collector, each with its unit and its reason.  Loads nothing."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from typing import Final

DATABASE_FILE: Final = "hearsay.sqlite3"  # in the data folder of a device
NOTES_FILE: Final = (
    "command-notes"  # what the last child wrote of reports and times, never of values
)
PERMIT_FILE: Final = "command-permit"  # a child must find it as its parent did; a denial removes it
KEY_SIZE: Final = 32  # bytes of a public key
SECRET_SIZE: Final = 32  # bytes of operating system entropy, one secret a device

WIRE_VERSION: Final = 1

UPLOAD_ID_SIZE: Final = 16  # bytes; random, so two uploads never share one
DIGEST_SIZE: Final = (
    6  # bytes; 2^48 definitions, a collision within one registry is refused at load
)

MAX_REPORT_AGE: Final = 14  # days; a phone that was away for a fortnight still counts
MAX_CLOCK_SKEW: Final = 1  # days; a device may be in tomorrow's UTC day already

MAX_DEVICE_BODY: Final = 64 * 1024  # bytes; some 1,500 reports as JSON, far above any device's need
SIZE_CLASSES: Final = (1_024, 4_096, 16_384, MAX_DEVICE_BODY)  # bytes; of a padded device's body
MAX_GATEWAY_BODY: Final = 8 * 1024 * 1024  # bytes; a few columns of a million reports
MAX_INFLATION: Final = 4  # decompressed bytes per allowed body byte; JSON of payloads gains less

RELAY_WAIT: Final = 110.0  # seconds that a device waits for an answer through a relay, which comes
# with a batch; less than the 120 after which a pass of the schedule is made again
RELAY_WAIT_CHILD: Final = 25.0  # seconds, of the 30 that the child of a short-lived program lives

MAX_ANSWER: Final = 64 * 1024  # bytes; a rejection for each of 256 columns is a third of it

MAX_COLUMNS: Final = 256  # columns an upload; one a metric and epoch
MAX_NAME: Final = 64  # characters of a metric, dimension or application name
MAX_REGISTRY: Final = 1 << 20  # characters of a registry file; some 50,000 labels
MAX_COMPILED: Final = 4 * MAX_REGISTRY  # characters of a compiled one, which has texts of ours too
MAX_LABEL: Final = 100  # characters of an item or segment label; what a chart can show
MAX_EPSILON_DIGITS: Final = 9  # decimals of a registry's epsilon: whole nano-nats

MAX_EXPONENT: Final = 400  # decimal; floats end before, and 1e999999999 as a Fraction fills memory

MAX_PENDING_REPORTS: Final = 500  # reports; two weeks offline at 30 a day, under 100 kB of flash
MAX_PENDING_SIZE: Final = 512 * 1024  # bytes of their payloads; only wide sketches come near it
MAX_UPLOAD_REPORTS: Final = 200  # reports a device puts into one upload; 20 kB as JSON
MAX_ACKNOWLEDGED: Final = 100  # acknowledged reports that a device can still show its user
MAX_GATEWAY_PENDING: Final = 1_000_000  # reports; a site of 1,000 machines for a month
MAX_GATEWAY_SIZE: Final = 256 * 1024 * 1024  # bytes of their payloads
MAX_GATEWAY_REPORTS: Final = 100_000  # reports of one upload of a gateway; 25 MB while sealing it

DEFAULT_CAP_REPORT: Final = "4"  # epsilon; beyond, one report is close to the truth
DEFAULT_CAP_METRIC_WEEK: Final = "8"  # epsilon of seven days, of one metric
DEFAULT_CAP_WEEK: Final = "8"  # epsilon of seven days, over all metrics
DEFAULT_CAP_LIFETIME: Final = "1000"  # epsilon for life, over all metrics
DEFAULT_CAP_DELTA: Final = "0.00001"  # delta for life, over all metrics; ten reports of 1e-6

EXPIRES_SOON: Final = 30  # days before a metric's last one in which developers are warned

MIN_REPORTS_FLOOR: Final = 100  # reports; no estimate is ever shown for fewer
DEFAULT_MIN_REPORTS: Final = 1_000  # reports; below it few metrics can say anything
