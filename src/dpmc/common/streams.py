"""Random streams keyed by names: equal names give equal numbers, different names independent ones."""

import hashlib
import json

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import checked, real, shown


def canonical_epsilon(epsilon: str | float) -> str:
    """Return ε > 0 as text: "4" for 4, 4.0 and "4.0"; "inf" without privacy; else raise DpmcError."""
    value = checked("epsilon", real, epsilon)
    if not value > 0:
        raise DpmcError(f"epsilon: {shown(epsilon)} must be greater than 0 (or inf, for no privacy)")
    # Without an exponent, so that a number has one text only.
    return "inf" if np.isinf(value) else np.format_float_positional(value, trim="-")


def stream(*names: str | int) -> np.random.Generator:
    """Return the counter-based generator (Philox) whose key is a hash of `names`; 1 and "1" differ."""
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    # Two words of 64 bits, read in the same order on every machine.
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8")))
