"""Rényi differential privacy of the batch algorithms, as the thesis states it (Theorems 3.3, 3.5).

Each query has a curve epsilon(alpha) over integer orders alpha. Curves add over a composition, and
    epsilon = sum epsilon(alpha) + ln(1/delta) / (alpha - 1)
at the best order (Theorem 2.5). Both theorems apply an amplification theorem for batches drawn
without replacement (Wang, Balle and Kasiviswanathan 2019, Theorem 9):
    epsilon(alpha) = ln(1 + q^2 C(alpha, 2) min{4(e^e(2) - 1), 2 e^e(2)}
                          + 2 sum_{j=3}^{alpha} q^j C(alpha, j) e^((j-1) e(j))) / (alpha - 1)
where e(j) is the curve of the query given the batch and q = b/n. All sums are in logs.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from dpmc.privacy.accountants.base import MOST_ITERATIONS, Accountant, crossing
from dpmc.privacy.accountants.profiles import Vector
from dpmc.privacy.events import BarkerQuery, GaussianQuery, Query, SubsampledGaussianQuery, total_mu

LARGEST_ORDER = 256
"""Orders of a subsampled Gaussian query are 2 to 256, as in the thesis."""
PUBLISHED_LARGEST_ORDER = 199
"""Orders behind the published curve of Figure 6.1 are 2 to 199."""
EVERY_ORDER_UP_TO = 1024
"""Orders of a Barker test are all integers up to this one, then 16 orders per doubling."""


@dataclass(frozen=True)
class RenyiDivergence(Accountant):
    """Theorem 3.5 for subsampled Gaussian queries, Theorem 3.3 for Barker tests, and mixtures."""

    name = "rdp"
    version = "1"
    handles = (SubsampledGaussianQuery, BarkerQuery)
    beside = (GaussianQuery,)

    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        orders, total = _sum_of_curves(events)
        # Theorem 2.5 solved for delta.
        return math.exp(min(0.0, float(np.min((orders - 1.0) * (total - epsilon)))))

    def _obstacle(self, event: Query) -> str | None:
        if isinstance(event, BarkerQuery) and event.batch_size < 16:
            return f"batch_size = {event.batch_size}: must be at least 16 for an order between 2 and b/5"
        return None


@lru_cache(maxsize=64)
def curve(event: Query) -> tuple[Vector, Vector]:
    """Return orders (m,) and epsilon(alpha) (m,) of one query on a batch.

    Of a subsampled Gaussian query by Theorem 3.5, e(j) = j/(2 s^2), s the noise multiplier; of a Barker test
    by Theorem 3.3, for integers 2 < alpha < b/5, of those above `EVERY_ORDER_UP_TO` some.
    """
    if isinstance(event, SubsampledGaussianQuery):
        orders = np.arange(2.0, LARGEST_ORDER + 1.0)
        return orders, _amplified(orders, _gaussian(event, LARGEST_ORDER), event.sampling_fraction)
    assert isinstance(event, BarkerQuery)
    b = event.batch_size
    largest = -(-b // 5) - 1
    orders = np.arange(3.0, min(largest, EVERY_ORDER_UP_TO) + 1.0)
    if largest > EVERY_ORDER_UP_TO:
        doublings = math.log2(largest / EVERY_ORDER_UP_TO)
        # Any set of orders gives a bound; all of them would take long for large batches.
        beyond = EVERY_ORDER_UP_TO * np.exp2(np.arange(1.0, 16.0 * doublings + 1e-9) / 16.0)
        orders = np.unique(np.append(orders, np.floor(beyond)))
    j = np.arange(2.0, largest + 1.0)
    # Positive, because every j is below b/5.
    spread = b - 5.0 * j
    on_batch = 2.5 / b + np.log(2.0 * b / spread) / (2.0 * (j - 1.0)) + 2.0 * j / spread
    return orders, _amplified(orders, on_batch, event.sampling_fraction)


def published_iterations(event: SubsampledGaussianQuery, epsilon: float, delta: float) -> int:
    """Return the iterations of the published curve in Figure 6.1, whose sum lacks its last term: no bound."""
    orders = np.arange(2.0, PUBLISHED_LARGEST_ORDER + 1.0)
    on_batch = _gaussian(event, PUBLISHED_LARGEST_ORDER)
    published = _amplified(orders, on_batch, event.sampling_fraction, last_term=False)
    allowed = epsilon + math.log(delta) / (orders - 1.0)
    most = crossing(lambda k: float(np.min(k * published - allowed)), 1, MOST_ITERATIONS, rises=True)
    assert most is not None  # the curve is above 0
    return most


def _gaussian(event: SubsampledGaussianQuery, largest: int) -> Vector:
    """Return e(j) = j/(2 s^2) for j = 2 ... largest (Theorem 2.11(1)); inf if it overflows."""
    inverse = 1.0 / event.noise_multiplier
    with np.errstate(over="ignore"):
        return np.arange(2.0, largest + 1.0) * (0.5 * inverse * inverse)


def _amplified(orders: Vector, on_batch: Vector, q: float, last_term: bool = True) -> Vector:
    """Return epsilon(alpha) at `orders` by the amplification theorem; `on_batch` is e(j), j = 2, 3, ..."""
    j = np.arange(2.0, on_batch.size + 2.0)
    e2 = float(on_batch[0])
    log_weight = math.log(2.0) + j * math.log(q) + (j - 1.0) * on_batch
    # min{4(e^x - 1), 2 e^x} is 4(e^x - 1) for x < ln 2.
    # 1e-300, because e(2) underflows to 0 for very large noise.
    least = math.log(4.0 * math.expm1(max(e2, 1e-300))) if e2 < math.log(2.0) else math.log(2.0) + e2
    log_weight[0] = 2.0 * math.log(q) + least
    # Once for all orders: binomial coefficients are differences of these.
    log_factorial = gammaln(np.arange(on_batch.size + 3.0) + 1.0)
    values = np.empty(orders.size)
    for place, order in enumerate(orders.astype(int)):
        last = order if last_term or order == 2 else order - 1
        terms = np.arange(2, last + 1)
        choose = log_factorial[order] - log_factorial[terms] - log_factorial[order - terms]
        log_sum = logsumexp(choose + log_weight[: last - 1])
        values[place] = np.logaddexp(0.0, log_sum) / (order - 1.0)
    return values


def _sum_of_curves(events: tuple[Query, ...]) -> tuple[Vector, Vector]:
    """Return the orders that all events have, and the sum of their curves at these orders."""
    orders = np.arange(2.0, LARGEST_ORDER + 1.0)
    gaussian = [event for event in events if isinstance(event, GaussianQuery)]
    curves = [
        # Without the count, so that runs of different lengths share a cached curve.
        (*curve(replace(event, count=1)), event.count)  # type: ignore[type-var]
        for event in events
        if not isinstance(event, GaussianQuery)
    ]
    for i, (known, _, _) in enumerate(curves):
        # Curves add at one order only, so an order that one of them lacks is lost.
        orders = known if i == 0 else np.intersect1d(orders, known)
    total = orders * (total_mu(gaussian) or 0.0)  # Theorem 2.11(1)
    for known, values, count in curves:
        total = total + count * values[np.searchsorted(known, orders)]
    return orders, total
