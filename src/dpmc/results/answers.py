"""Draws from answers: the posterior given what a release, or a run of the lab, asked and was answered.

An answer is data that its ε covers. Whoever has it draws again: more draws, another prior, or the posterior
of several answers about one table. No model class and no rows are needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.answers import About
from dpmc.base import Posterior
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.common.values import MOST_CHAINS, array, checked, count, shown
from dpmc.common.version import __version__
from dpmc.data.chain_files import ResultOrFile
from dpmc.models.banana import Banana
from dpmc.models.gaussian import Gaussian
from dpmc.releases import files
from dpmc.results import POSTERIOR, as_tree, require_alike
from dpmc.results.joint import joint_ledger

if TYPE_CHECKING:
    import xarray
    from numpy.typing import ArrayLike

MOST_DRAWS = 10**6  #: of a chain
#: Attributes of a run that its posterior has, too, and those of each answer, in `answers`.
KEPT = "model model_id dataset n temperature dimension method description".split()
OF_ANSWER = "mode method epsilon delta hyperparameters data_ledger".split()


def posterior(
    results: ResultOrFile | Sequence[ResultOrFile],
    *,
    prior_sd: ArrayLike | None = None,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
) -> xarray.DataTree:
    """Draw from the posterior given answers of `noisy-scores` or `noisy-statistics`; it costs no ε.

    Parameters
    ----------
    results
        Result of `dpmc.sample` or `dpmc.release`, or its file; or a sequence of such about one table, which
        make one posterior: the noise of each answer is its own, the sampling of the rows common to all.
    prior_sd
        Another normal prior around 0: one standard deviation, or (d,), one per parameter. None: the model's.
        For `noisy-statistics` one number, of Gaussian models only.
    draws, chains, seed
        Independent draws of each chain, chains, and the seed: equal arguments give equal draws.

    Returns
    -------
    xarray.DataTree
        Groups posterior (`theta`: chain, draw, parameter) and answer, of several answers answer_0, answer_1,
        …. The attribute `answers` says in JSON what each answer was; `ledger` has what they spent together.

    Raises
    ------
    DpmcError
        For no results, or results without an answer, with a damaged one, of different tables, models or
        methods, or given twice; for different priors without `prior_sd`; for `simulated-scores`, which needs
        its model; for `noisy-statistics` with a user's model, which no file contains; for a prior that
        the model cannot have; and for `draws`, `chains` or `seed` out of range.
    """
    import xarray

    length = checked("posterior: draws", count, draws, 1, MOST_DRAWS)
    size = checked("posterior: chains", count, chains, 1, MOST_CHAINS)
    seed = checked("posterior: seed", count, seed, 0)
    trees, found, sds = posterior_of_results(results, prior_sd)
    drawn = [found.draws(stream("posterior", seed, chain), length) for chain in range(size)]
    first = trees[0]
    root = {key: first.attrs[key] for key in KEPT if key in first.attrs}
    root |= {"mode": POSTERIOR, "iterations": length, "thin": 1, "chains": size, "seed": seed}
    root |= {"dpmc_version": __version__, "ledger": joint_ledger(trees)}
    said = [{key: tree.attrs[key] for key in OF_ANSWER if key in tree.attrs} for tree in trees]
    root["answers"] = json.dumps(said, sort_keys=True, default=lambda number: number.item())
    root |= {} if sds is None else {"prior_sd": sds}
    theta = {"theta": (("chain", "draw", "parameter"), np.array(drawn))}
    labels = first["posterior"]["parameter"].values
    coordinates = {"chain": np.arange(size), "draw": np.arange(1, length + 1), "parameter": labels}
    library = {"inference_library": "dpmc", "inference_library_version": __version__}
    names = [f"/answer_{i}" for i in range(len(trees))] if len(trees) > 1 else ["/answer"]
    groups = {name: tree["answer"].to_dataset() for name, tree in zip(names, trees, strict=True)}
    groups |= {"/": xarray.Dataset(attrs=root), "/posterior": xarray.Dataset(theta, coordinates, library)}
    return xarray.DataTree.from_dict(groups)


def posterior_of_results(
    results: ResultOrFile | Sequence[ResultOrFile], prior_sd: ArrayLike | None = None
) -> tuple[list[xarray.DataTree], Posterior, np.ndarray | None]:
    """Return results as trees, the posterior given their answers, and the sds of its prior, as `posterior`.

    The sds are (d,), None if they are the model's own.
    """
    several = isinstance(results, Sequence) and not isinstance(results, str)
    all_of: Sequence[Any] = results if several else [results]  # type: ignore[assignment]
    trees = [as_tree(one) for one in all_of]
    require_alike(trees, "posterior", any_prior=True)
    answers = [answer_of(tree) for tree in trees]
    if len({tuple(sorted(one)) for one in answers}) > 1:
        raise DpmcError("posterior: method must be the same in all results")
    if len({b"".join(one[name].tobytes() for name in sorted(one)) for one in answers}) < len(answers):
        raise DpmcError("posterior: an answer is given twice; its noise is not another one")
    return (trees, *_posterior(answers, trees[0], prior_sd))


def answer_of(tree: xarray.DataTree) -> dict[str, np.ndarray]:
    """Return the arrays of an answer; raise DpmcError for a result that has none."""
    group = tree["answer"].to_dataset() if "answer" in tree.children else {}
    found = {str(name): np.asarray(group[name].values, float) for name in group}
    if method_of(found) is None:
        raise DpmcError(
            f"posterior: {shown(tree.attrs.get('method'))}: the result has no answer to draw from; those of "
            "methods that ask once have one"
        )
    return found


def method_of(answer: Mapping[str, np.ndarray]) -> Any:
    """Return the method whose answers have these arrays; None if there is none."""
    return next((cls for cls in files.ANSWERING if answer.keys() == set(cls.arrays)), None)


def _posterior(
    answers: list[dict[str, np.ndarray]], tree: xarray.DataTree, prior_sd: ArrayLike | None
) -> tuple[Posterior, np.ndarray | None]:
    """Return the posterior given answers, and the sds of its prior; None if those are the model's own."""
    n, d = int(tree.attrs["n"]), tree["posterior"].sizes["parameter"]
    sds = None
    if prior_sd is not None:
        same = checked("posterior: prior_sd", np.ndim, prior_sd) == 0
        sds = array([prior_sd] * d if same else prior_sd, (d,), "posterior: prior_sd")
        if not (sds > 0.0).all():
            raise DpmcError(f"posterior: prior_sd: {shown(prior_sd)} must be greater than 0")
    own: list[Any] = [one.get("prior_sd") for one in answers]
    if sds is None and any(not np.array_equal(own[0], other) for other in own):
        raise DpmcError("posterior: the models of these results have different priors: give prior_sd")
    cls = method_of(answers[0])
    if "given_all" not in vars(cls):
        raise DpmcError(
            "posterior: this method needs its model: dpmc.summary says its draws, dpmc.sample and "
            "dpmc.release draw others"
        )
    model = _model_of(tree.attrs, sds) if cls.needs_model else None
    temperature, sds = float(tree.attrs["temperature"]), own[0] if sds is None else sds
    try:
        found = cls.given_all(answers, About(n, temperature, model, sds))
        array(found.mean(), (d,), "mean")
        array(np.linalg.cholesky(found.covariance()), (d, d), "covariance")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # of any numbers
        raise DpmcError(f"posterior: the answer cannot be used, it may be damaged ({error})") from None
    return found, sds


def model_id(attrs: Mapping[Any, Any]) -> str:
    """Return the name of a result's model: `module:Class`, or of the catalogue."""
    about = json.loads(str(attrs["data_ledger"]))["about"] if "data_ledger" in attrs else attrs
    return str(about.get("model_id"))


def _model_of(attrs: Mapping[Any, Any], sds: np.ndarray | None) -> Any:
    """Return the model of a noisy sum, with another prior if `sds` are given."""
    name = model_id(attrs)
    known = files.known_model(None, name) if ":" not in name else None
    if known is None:
        raise DpmcError(
            f"posterior: {shown(name)} is a model of your own, which is not in the file; without it nobody "
            "knows what a noisy sum says of the parameters. Models of the catalogue are known"
        )
    model: Any = known.model
    if sds is None:
        return model
    if not isinstance(model, Gaussian) and not (isinstance(model, Banana) and model.a == model.b == 0.0):
        raise DpmcError(f"posterior: prior_sd: {name} has no normal prior around 0 that it could replace")
    if len(set(sds)) > 1:
        raise DpmcError(f"posterior: prior_sd: {name} has one for all parameters: give one number")
    names = [field.name for field in fields(model) if field.name.endswith("prior_variance")]
    changed: dict[str, Any] = dict.fromkeys(names, float(sds[0]) ** 2)
    return replace(model, **changed)
