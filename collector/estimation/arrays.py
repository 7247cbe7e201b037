"""What arrays of numbers hold, and a mechanism of whatever values."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from client_sdk.mechanisms import Mechanism

Floats: TypeAlias = NDArray[np.floating[Any]]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = Floats | float  # one each, or one for all
Counts: TypeAlias = Ints | int
AnyMechanism: TypeAlias = Mechanism[Any]
