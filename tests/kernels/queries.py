"""A kernel's uses of rows and noise, observed from outside and compared with its declaration."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpmc import evaluators
from dpmc.privacy import noise
from dpmc.privacy.events import BarkerQuery, GaussianQuery, SubsampledGaussianQuery
from dpmc.privacy.runs import RunQueries
from kernels.ladder import Kernel, Numbers, Probe, Spy, numbers, private_data, run, steps


class Complaints(list[str]):
    """Differences from the declaration; empty if there are none."""

    def compare(self, what: str, found: Any, wanted: Any) -> None:
        if np.shape(found) != np.shape(wanted) or not np.allclose(found, wanted, rtol=1e-12, atol=0.0):
            self.append(f"{what}: {found}, declared {wanted}")


def watched(kernel: Kernel, chains: int, m: int) -> Iterator[tuple[int, Numbers, Spy, Spy]]:
    """Run m iterations; yield the position of each, all numbers, and the calls recorded in it."""
    generator = np.random.default_rng(23)
    start = kernel.setting.posterior.draws(generator, chains)
    given = numbers(kernel, generator, chains, m)
    evaluator = Spy(evaluators.evaluator_of(kernel.setting.model, kernel.setting.rows))
    source = Spy(noise.LabNoise(given.ratio_normals, given.gradient_normals))
    private = private_data(kernel, given, None, evaluator, source)
    for i, _ in enumerate(steps(kernel, start, given, kernel.setting.model, private)):
        yield i, given, evaluator, source
        evaluator.calls.clear()
        source.calls.clear()


def declared(algorithm: Any, n: int, name: str, first: bool) -> tuple[int, float | None]:
    """Queries of this name that an iteration declares, and their multiplier (None: exact)."""
    once, each = RunQueries.of(algorithm, n)
    events = [e for e in (once if first else ()) + tuple(each) if e.name == name]
    multipliers = {e.noise_multiplier if isinstance(e, GaussianQuery) else None for e in events}
    assert len(multipliers) <= 1, f"several multipliers for {name}"
    return sum(e.count for e in events), multipliers.pop() if multipliers else None


def query_faults(kernel: Kernel, chains: int = 2, m: int = 4) -> list[str]:
    """Return the differences between performed and declared queries; empty if there are none.

    Every question about the rows must be declared, bounded by clip‖θ − θ'‖₂ (or the gradient's clip), and
    answered with fresh noise of sd T · multiplier · 2 · bound.
    """
    if kernel.algorithm.batch_size:
        return batch_query_faults(kernel, chains, m)
    algorithm, setting, faults = kernel.algorithm, kernel.setting, Complaints()
    clip = getattr(algorithm, "clip_l", getattr(algorithm, "clip", np.inf))
    for i, _, evaluator, source in watched(kernel, chains, m):
        ratios, multiplier = declared(algorithm, setting.n, "log-ratio", i == 0)
        asked = evaluator.of("ratio_sums")
        faults.compare("log ratios asked", len(asked), ratios)
        sds = []
        for theta, proposal, bound, _ in asked:
            distance = np.sqrt(((theta - proposal) ** 2).sum(axis=1))
            if getattr(algorithm, "clip_distance", "text") == "as_coded":
                distance = np.abs((theta - proposal).sum(axis=1))
            wanted = clip * distance if np.isfinite(clip) else np.full(chains, np.inf)
            faults.compare("log-ratio bound", bound, wanted)
            if multiplier is not None:
                sds.append(setting.temperature * multiplier * 2.0 * wanted)
        faults.compare("sd of a log ratio", [sd for _, _, sd, _ in source.of("corrected", "centred")], sds)

        gradients, multiplier = declared(algorithm, setting.n, "gradient", i == 0)
        bounds = [bound for _, bound, _ in evaluator.of("gradient_sums")]
        faults.compare("gradient bounds", bounds, [getattr(algorithm, "clip_g", 0.0)] * gradients)
        sds = []
        if multiplier is not None:
            sds = [setting.temperature * multiplier * 2.0 * algorithm.clip_g] * gradients
        vectors = source.of("vectors")
        faults.compare("sd of a gradient", [sd for _, _, sd, _, _ in vectors], sds)
        if len({int(stage) for *_, stage, _ in vectors}) < len(vectors):
            faults.append(f"iteration {i}: noise used more than once")
    return faults


def batch_query_faults(kernel: Kernel, chains: int, m: int) -> list[str]:
    """As `query_faults`, for kernels that look at batches.

    One query an iteration: a batch of the declared size, by that iteration's own words; rows bounded by
    c = clip‖θ − θ'‖₂ with noise sd multiplier · (2nTc/b + factor (1 − 1/b)(nTc/b)²), or, for Barker's
    test, by clip_factor √b/(nT) with noise variance 2 less the batch's. Or a gradient of rows bounded by
    clip/T with noise sd multiplier · 2n clip/b, the declared sensitivity.
    """
    algorithm, n, faults = kernel.algorithm, kernel.setting.n, Complaints()
    once, each = RunQueries.of(algorithm, n)
    kind = BarkerQuery if kernel.is_barker else SubsampledGaussianQuery
    wanted = [(kind, algorithm.batch_size, n, 1, "substitute")]
    if once or [(type(e), e.batch_size, e.n, e.count, e.neighbours) for e in each] != wanted:
        return [f"declared {once}, {each}"]
    b = float(algorithm.batch_size)
    scale = kernel.setting.temperature * n / b
    for i, given, evaluator, source in watched(kernel, chains, m):
        asked, gradients = evaluator.of("batch_ratio_sums"), evaluator.of("batch_gradient_sums")
        faults.compare("batches asked", len(asked) + len(gradients), 1)
        for _, bound, words, _ in gradients:
            sensitivity = 2.0 * n * algorithm.clip / b
            noise = each[0].noise_multiplier * sensitivity * given.gradient_normals[i, :, 0]
            faults.compare("words", words, given.words[i])
            faults.compare("bound of a row", bound, algorithm.clip / kernel.setting.temperature)
            faults.compare("sensitivity", each[0].sensitivity, sensitivity)
            answers = [answer - unit * total for total, unit, _, _, answer in source.of("vectors")]
            near = 1e-9 * np.abs(noise).max()
            if len(answers) != 1 or not np.allclose(answers, [noise], rtol=1e-9, atol=near):
                faults.append(f"noise: {answers}, declared {noise}")
            faults.compare("log ratios' noise", len(source.of("corrected", "centred")), 0)
        for theta, proposal, bound, words, (_, squares, _) in asked:
            faults.compare("words", words, given.words[i])
            if kernel.is_barker:
                c = np.full(chains, algorithm.clip_factor / (scale * np.sqrt(b)))
                sds = np.sqrt(2.0 - scale**2 * squares)
            else:
                c = algorithm.clip * np.sqrt(((theta - proposal) ** 2).sum(axis=1))
                factor = {"thesis": 3.0, "tight": 2.0}[algorithm.sensitivity]
                variance_part = factor * (1.0 - 1.0 / b) * (scale * c) ** 2
                sds = each[0].noise_multiplier * (2.0 * scale * c + variance_part)
            faults.compare("bound of a row", bound, c)
            faults.compare("sd", [sd for _, _, sd, _ in source.of("corrected", "centred")], [sds])
    return faults


def attained_multipliers(kernel: Kernel) -> dict[str, tuple[float, float]]:
    """Return the measured noise multiplier and the declared one, for each query of one iteration.

    Two data sets differ in one row, which is as extreme as a row can be and lies on opposite sides.
    The change of the noiseless answer is the sensitivity attained; the change of the answer from
    noise z = −1 to z = 1 is twice the sd. In the worst batch all rows are clipped, to the same side, and
    the batch's first row moves to the other: the larger of the two changes, joint for sum and variance.
    """
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(24)
    start = setting.posterior.draws(generator, 1)
    given = numbers(kernel, generator, 1, 1)
    given.words[:] = 0  # the batch's first row is row 0; drawn anew, it would be all of them

    def answers(rows: np.ndarray, z: float) -> tuple[float, np.ndarray]:
        vectors = np.zeros_like(given.gradient_normals)
        vectors[:, :, :1, 0] = z
        now = replace(given, ratio_normals=np.full((1, 1), z), gradient_normals=vectors)
        spy, probe = Spy(private_data(kernel, now, replace(setting, rows=rows))), Probe()
        run(kernel, start, now, private=spy, log_uniform=probe)
        gradients = spy.of("gradient")
        return float(probe.compared[0]), gradients[0][-1][0] if gradients else np.zeros(start.shape[1])

    def moved(side: float, rows: np.ndarray) -> np.ndarray:
        rows = rows.copy()
        rows[0] = side * 1e9
        return rows

    if algorithm.batch_size:
        ends = [np.full(setting.rows.shape, side * 1e9) for side in (1.0, -1.0)]
        change = max(
            abs(answers(moved(-side, rows), 0.0)[0] - answers(rows, 0.0)[0])
            for side, rows in zip((1.0, -1.0), ends, strict=True)
        )
        sd = 0.5 * (answers(ends[0], 1.0)[0] - answers(ends[0], -1.0)[0])
        return {"batch log-ratio": (sd / change, algorithm.queries(setting.n).each[0].noise_multiplier)}

    (low, low_gradient), (high, high_gradient) = (answers(moved(s, setting.rows), 0.0) for s in (1.0, -1.0))
    (minus, minus_gradient), (plus, plus_gradient) = (
        answers(moved(1.0, setting.rows), z) for z in (-1.0, 1.0)
    )
    found = {}
    _, ratio_multiplier = declared(algorithm, setting.n, "log-ratio", True)
    count, gradient_multiplier = declared(algorithm, setting.n, "gradient", True)
    if ratio_multiplier is not None and not count:
        # where gradients come first, a changed row changes the proposal too, and nothing is seen
        found["log-ratio"] = (0.5 * abs(plus - minus) / abs(high - low), ratio_multiplier)
    if gradient_multiplier is not None:
        change = np.sqrt(((high_gradient - low_gradient) ** 2).sum())
        sd = 0.5 * np.abs(plus_gradient - minus_gradient).max()
        found["gradient"] = (sd / change, gradient_multiplier)
    return found
