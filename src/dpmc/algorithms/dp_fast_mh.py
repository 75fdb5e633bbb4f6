"""DP-Fast MH (Zhang and Zhang 2023, Algorithm 2): TunaMH on few rows, all rows where these are not enough."""

from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, settle, walk
from dpmc.compiler import compilable
from dpmc.privacy.events import FastMetropolisRelease, NonPrivateRelease
from dpmc.privacy.fast_mechanism import FastRule

VARIANTS = ("published", "as_coded", "corrected")


@compilable
class DPFastMH(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on a minibatch or all rows, with noise or not.

    `published`: as Algorithm 2 is argued for: minibatch where the number drawn B < K; Metropolis' test, with
    normal noise where the sensitivity is above its limit, and the correction there only.
    `as_coded`: the authors' scripts: minibatch where λ + CM < K; noise uniform on [0, sd).
    `corrected`: rows clipped to a public bound and drawn uniformly; minibatch where λ + CM < K; Barker's test
    where no noise is drawn. The only one that keeps what it promises, and declares what that is.
    """

    rule: FastRule
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False
    batch_size = 0
    random_rows = True
    random_words = 1

    @classmethod
    def read(cls, settings: Settings) -> "DPFastMH":
        """Take this algorithm's hyperparameters."""
        return cls(
            read_rule(settings, settings.positive("batch_mean"), settings.count("most_rows")),
            settings.lengths("proposal_sd"),
        )

    @staticmethod
    def check_calibration(settings: Settings) -> None:
        """Take what only `calibrate` reads."""
        settings.positive("most_rows_per_epsilon", 1.0)

    @classmethod
    def calibrate(cls, values: dict[str, Any], epsilon: float, delta: float, n: int) -> dict[str, Any]:
        """The hyperparameters `values` for an iteration that is to be (ε, δ).

        `most_rows_per_epsilon` among them, in place of K itself, says that K is that times ε, rounded up.
        """
        values = {**values, "epsilon": epsilon, "delta": delta}
        per_epsilon = values.pop("most_rows_per_epsilon", None)
        if per_epsilon is not None and "most_rows" not in values:
            values["most_rows"] = int(np.ceil(per_epsilon * epsilon * (1.0 - 1e-12)))
        return values

    @property
    def public_clip(self) -> float:
        """Clip of every row in nats per unit distance; ∞: rows have bounds of their own."""
        return self.rule.clip

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown."""
        return variant_of(self.rule)

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 0
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration; exact ones where nothing is guaranteed.

        Raises DpmcError where the calibration of Theorem 2 is not valid.
        """
        if not is_corrected(self.rule):
            return (), (NonPrivateRelease("acceptance test"),)
        return (), (corrected_release(self.rule, n),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        step(self.rule, self.proposal_sd, door, noise, draws, i, state, record)


@compilable
def step(rule, proposal_sd, door, noise, draws, i, state, record):
    """One iteration of every chain: a walk, and the test that `rule` describes."""
    proposal = walk(state.theta, proposal_sd, draws.normal, i)
    accepted = np.zeros(state.theta.shape[0], np.bool_)
    door.fast_test(
        state.theta,
        proposal,
        rule,
        draws.log_u,
        noise,
        draws.words,
        i,
        accepted,
        record.rows_used,
        record.noisy,
        record.all_rows,
        record.ratio_clipped,
    )
    for c in range(state.theta.shape[0]):
        settle(state, proposal, accepted[c], c, i, record)


def read_rule(settings: Settings, batch_mean: float, most_rows: int) -> FastRule:
    """The rule of a variant; K = `most_rows` = 0: always all rows."""
    variant = settings.choice("variant", VARIANTS, "published")
    as_coded, corrected = variant == "as_coded", variant == "corrected"
    delta = settings.fraction("delta")
    if delta == 1.0:
        settings.refuse("delta", delta, "must be less than 1")
    return FastRule(
        settings.positive("epsilon"),
        delta,
        float(batch_mean),
        int(most_rows),
        settings.positive("clip") if corrected else np.inf,
        branch_on_mean=variant != "published",
        barker=corrected,
        as_coded=as_coded,
        inverted=settings.flag("inverted_sensitivity", False) if as_coded and most_rows else False,
    )


def corrected_release(rule: FastRule, n: int) -> FastMetropolisRelease:
    """The event of one corrected iteration; DpmcError where its calibration is not valid."""
    from dpmc.privacy import fast_mh  # and with it accountants, which a sampler otherwise does without

    return fast_mh.corrected_release("acceptance test", rule.epsilon, rule.delta, n, rule.most_rows)


def is_corrected(rule: FastRule) -> bool:
    """Whether all that a rule uses is public, and its test without noise Barker's."""
    return rule.clip < np.inf and rule.barker


def variant_of(rule: FastRule) -> str:
    """What must be said wherever the output of a rule is shown."""
    if is_corrected(rule):
        return "put right: public bounds, Barker's test without noise, minibatch by the mean number of rows"
    if rule.as_coded:
        inverted = ", sensitivity inverted" if rule.inverted else ""
        return f"as coded by its authors, with uniform noise{inverted}: no guarantee"
    return "as published, private on acceptance only: no guarantee"
