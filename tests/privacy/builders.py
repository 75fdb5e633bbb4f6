"""Queries and accountants that several files use; other accountants to compare with."""

import math
from collections.abc import Iterable
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting.pld import pld_pmf

from dpmc.privacy import accountants
from dpmc.privacy.events import (
    BarkerQuery,
    GaussianQuery,
    Query,
    SubsampledGaussianQuery,
    from_json,
)
from dpmc.privacy.ledger import Ledger

TIGHT, ZCDP, RDP = (accountants.get(name) for name in ("tight", "zcdp", "rdp"))
REPLACE, WOR, BARKER, FAST = (
    accountants.get(name) for name in ("replace-pld", "wor-pld", "barker-pld", "fast-mh-pld")
)


def queries_in(ledger: Ledger, kind: str) -> tuple[Query, ...]:
    """Return the queries that are reserved, performed or forfeited."""
    return from_json(ledger.to_json(with_spent=False)[kind])


def gaussian(noise_multiplier: float, count: int = 1) -> tuple[Query, ...]:
    return (GaussianQuery("ratio", noise_multiplier, count),)


def minibatch(tau: float, batch_size: int, n: int, count: int = 1) -> tuple[Query, ...]:
    return (SubsampledGaussianQuery("batch ratio", math.sqrt(tau), batch_size, n, count),)


def barker(batch_size: int, n: int, count: int = 1) -> tuple[Query, ...]:
    return (BarkerQuery("test", batch_size, n, count),)


def claimed(profile: Any, epsilon: float) -> float:
    """A symmetric profile's curve, mirrored for ε < 0."""
    upper, lower = (float(tail[0]) for tail in profile.tails(np.array([abs(epsilon)])))
    half = upper - math.exp(abs(epsilon)) * lower
    return half if epsilon >= 0.0 else 1.0 - math.exp(epsilon) + math.exp(epsilon) * half


def composed_elsewhere(profile: Any, count: int, epsilon: float, last: int) -> float:
    """δ of `count` queries with this profile, discretised (step 1e-4) and composed by dp-accounting."""
    step = 1e-4
    losses = step * np.arange(last + 1)
    upper, lower = profile.tails(losses)
    half = upper - np.exp(losses) * lower
    mirrored = 1.0 - np.exp(-losses[:0:-1]) + np.exp(-losses[:0:-1]) * half[:0:-1]
    values = np.clip(np.concatenate([mirrored, half]), 0.0, 1.0)
    other = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, values)
    return other.self_compose(count).get_delta_for_epsilon(epsilon)


def to_dp_accounting(events: Iterable[Query]) -> dp_accounting.DpEvent:
    """The same composition as an event of dp-accounting, whose multipliers are sd / sensitivity, too.

    A Gaussian query on a batch becomes one sampled without replacement, under replace-one.
    """

    def counterpart(event: Query) -> dp_accounting.DpEvent:
        if isinstance(event, GaussianQuery):
            return dp_accounting.GaussianDpEvent(event.noise_multiplier)
        noise = dp_accounting.GaussianDpEvent(event.noise_multiplier)
        return dp_accounting.SampledWithoutReplacementDpEvent(event.n, event.batch_size, noise)

    return dp_accounting.ComposedDpEvent(
        [dp_accounting.SelfComposedDpEvent(counterpart(event), event.count) for event in events]
    )
