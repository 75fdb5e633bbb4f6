"""Files that somebody has doctored, with right hashes: each is found, in bounded memory and time."""

import copy
import hashlib
import json
import math
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray

import dpmc
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import read
from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.common.version import __version__
from dpmc.data import chain_files
from dpmc.privacy import accountants, data_ledger
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.lattice import price_of
from dpmc.privacy.ledger import Budget, ReleaseLedger
from dpmc.privacy.runs import RunQueries
from dpmc.releases import files as release_files
from dpmc.results import as_tree
from files.release_tree import (
    CHAINS,
    DIMENSION,
    HYPERPARAMETERS,
    ITERATIONS,
    START,
    entry,
    release_tree,
    run_ledger,
)

Doctor = Callable[[xarray.DataTree], object]
ROWS = np.random.default_rng(0).normal(size=(5, 2)).tolist()


@pytest.fixture
def tree(tmp_path: Path) -> xarray.DataTree:
    return release_tree(entry(tmp_path / "people.ledger"))


def sealed(tree: xarray.DataTree, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the entry of the ledger of the data set, and its hash with it."""
    taken = json.loads(tree.attrs["data_ledger"])
    change(taken)
    taken = data_ledger._sealed({key: value for key, value in taken.items() if key != "hash"})
    tree.attrs["data_ledger"] = json.dumps(taken, sort_keys=True)


def attribute(**values: Any) -> Doctor:
    return lambda tree: tree.attrs.update(values)


def in_entry(**values: Any) -> Doctor:
    return lambda tree: sealed(tree, lambda taken: taken.update(values))


def fact(**values: Any) -> Doctor:
    """Change a fact in the entry, and the attribute that repeats it, if one does."""

    def doctor(tree: xarray.DataTree) -> None:
        sealed(tree, lambda taken: taken["about"].update(values))
        for key, value in values.items():
            if key in tree.attrs:
                tree.attrs[key] = json.dumps(value, sort_keys=True) if key == "hyperparameters" else value

    return doctor


def setting(**values: Any) -> Doctor:
    return fact(hyperparameters={**HYPERPARAMETERS, **values})


def in_ledger(change: Callable[[dict[str, Any]], object]) -> Doctor:
    def doctor(tree: xarray.DataTree) -> None:
        own = json.loads(tree.attrs["ledger"])
        change(own)
        tree.attrs["ledger"] = json.dumps(own)

    return doctor


def in_events(**values: Any) -> Doctor:
    def change(own: dict[str, Any]) -> None:
        for event in (event for key in ("reserved", "performed", "forfeited") for event in own[key]):
            event.update(values)

    return in_ledger(change)


def in_price(**values: Any) -> Doctor:
    return in_ledger(lambda own: own["prices"][0].update(values))


def labelled(*labels: str) -> Doctor:
    def doctor(tree: xarray.DataTree) -> None:
        for name in ("posterior", "constant_data"):
            tree[name] = tree[name].to_dataset().assign_coords(parameter=list(labels))

    return doctor


def of_type(group: str, name: str, kind: str) -> Doctor:
    def doctor(tree: xarray.DataTree) -> None:
        content = tree[group].to_dataset()
        content[name] = content[name].astype(kind)
        tree[group] = content

    return doctor


def both(*doctors: Doctor) -> Doctor:
    return lambda tree: [doctor(tree) for doctor in doctors]


def without(name: str) -> Doctor:
    return lambda tree: tree.attrs.pop(name)


def version(text: str) -> Doctor:
    def doctor(tree: xarray.DataTree) -> None:
        tree.attrs["dpmc_version"] = text
        for group in tree.children.values():
            group.attrs["inference_library_version"] = text

    return doctor


def rates(change: Callable[[np.ndarray], np.ndarray]) -> Doctor:
    """Change the shares of accepted proposals."""

    def doctor(tree: xarray.DataTree) -> None:
        values = tree["sample_stats/acceptance_rate"].values
        values[:] = change(values)

    return doctor


def low_digit(*path: Any, towards: float = 0.0) -> Doctor:
    """Change the last bit of a number of the ledger."""

    def change(own: Any) -> None:
        for key in path[:-1]:
            own = own[key]
        own[path[-1]] = float(np.nextafter(own[path[-1]], towards))

    return in_ledger(change)


def of_sum(numbers: int, centre: int, d: int = DIMENSION, **facts: Any) -> Doctor:
    """Make it a release of `noisy-statistics`, whose ledger is right for a sum of so many numbers.

    With d parameters, the first ones.
    """
    values = {"clip": 1.0, "centre": [0.5] * centre, "noise_multiplier": 100.0}
    events = (GaussianQuery("sum", 100.0, sensitivity=2.0),)

    def doctor(tree: xarray.DataTree) -> None:
        price = price_of(events, 100, d, numbers, 0.5, 1e-6)
        made = ReleaseLedger(Budget(0.5, math.nextafter(1e-6 - price.delta, 0.0)), accountants.get("tight"))
        made.prices = (price.to_json(),)
        made.reserve(events)
        made.perform(events)
        for name in ("posterior", "constant_data"):
            tree[name] = tree[name].to_dataset().isel(parameter=slice(d))
        tree.attrs["dimension"] = d
        start = hashlib.sha256(np.ascontiguousarray(START[:, :d]).tobytes()).hexdigest()
        about = {"method": "noisy-statistics", "iterations": ITERATIONS, "start": start, **facts}
        fact(hyperparameters=values, **about)(tree)
        tree.attrs |= {
            "iterations": ITERATIONS,
            "forfeited": 0,
            "ledger": json.dumps(made.to_json(), sort_keys=True),
        }
        answer = {"sum": ("summary", np.zeros(numbers)), "sum_noise_sd": ((), 200.0)}
        tree["answer"] = xarray.DataTree(xarray.Dataset(answer, attrs=tree["posterior"].attrs))

    return doctor


def of_hmc(change: Callable[[list[Any]], object] = len, spare: int = 10) -> Doctor:
    """Make it a release of `dp-hmc`, which has two kinds of queries, and one before the first iteration."""
    values = {"clip_g": 1.0, "clip_l": 1.0, "mass": 1.0, "step_size": 0.1, "steps": 2}
    values |= {"tau_g": 50.0, "tau_l": 50.0, "reuse_gradients": True}
    run = RunQueries.of(read(algorithm_class("dp-hmc"), values, "", 3), 100, CHAINS)

    def doctor(tree: xarray.DataTree) -> None:
        price = price_of(run.total(ITERATIONS + spare), 100, 3, 0, 0.5, 1e-6)
        made = ReleaseLedger(Budget(0.5, math.nextafter(1e-6 - price.delta, 0.0)), accountants.get("tight"))
        made.prices = (price.to_json(),)
        made.reserve(run.total(ITERATIONS + spare))
        made.perform(run.total(ITERATIONS))
        made.forfeit()
        own = made.to_json()
        for key in ("reserved", "performed", "forfeited"):
            change(own[key])
        fact(hyperparameters=values, method="dp-hmc")(tree)
        tree.attrs |= {"forfeited": spare, "ledger": json.dumps(own, sort_keys=True)}

    return doctor


def forfeited(spare: int) -> Doctor:
    ledger = json.dumps(run_ledger(spare=spare).to_json(), sort_keys=True)
    return attribute(forfeited=spare, ledger=ledger)


def in_stats(**changed: Any) -> Doctor:
    """Change attributes of the group of acceptance, after its arrays."""

    def doctor(tree: xarray.DataTree) -> None:
        tree["sample_stats"].attrs.update(changed)

    return doctor


def filled(place: str, value: Any) -> Doctor:
    def doctor(tree: xarray.DataTree) -> None:
        tree[place].values[...] = value

    return doctor


def linear(description: str | None, *labels: str, **facts: Any) -> Doctor:
    """Say that the model is a `LinearRegression`."""

    def doctor(tree: xarray.DataTree) -> None:
        both(fact(**{**REGRESSION, **facts}), labelled(*(labels or LABELS)))(tree)
        tree.attrs |= {"model": "people"} if description is None else {"description": description}
        if description is None:
            del tree.attrs["description"]

    return doctor


def noisier(tree: xarray.DataTree) -> None:
    """Claim a hundredth of the noise, everywhere."""
    both(setting(tau=0.1), in_events(noise_multiplier=1.0))(tree)


REGRESSION = {"model_id": "dpmc.models.regression:LinearRegression", "temperature": 1.0}
LINEAR = "LinearRegression('y', ['a', 'b'])"
SMALL = "LinearRegression('y', ['a'], sd=None)"
LABELS = dpmc.LinearRegression("y", ["a"], sd=None).parameters


def of_numbers(numbers: int, centre: int) -> Doctor:
    """Make it a release of a sum of so many numbers of a banana, which has two."""

    def named(tree: xarray.DataTree) -> None:
        for name in ("posterior", "constant_data"):
            tree[name] = tree[name].to_dataset().assign_coords(parameter=np.arange(2))

    model = fact(model_id="flat-banana-2d", columns=2, temperature=1.0)
    return both(both(of_sum(numbers, centre, 2), named), both(model, without("description")))


#: What was done to a file -> doctor, and words of the problem that is found.
DOCTORED: dict[str, tuple[Doctor, str]] = {
    "hyperparameter of no algorithm, with rows": (setting(zz=ROWS), "hyperparameters: 'zz': [0.1257"),
    "hyperparameter of no algorithm": (setting(zz=1.0), "hyperparameters: zz: unknown hyperparameter"),
    "hyperparameter of another algorithm": (setting(batch_size=7), "hyperparameters: batch_size: unknown"),
    "hyperparameter missing": (fact(hyperparameters={"clip": 1.0, "tau": 10.0}), "proposal_sd: missing"),
    "hyperparameter out of range": (setting(clip=1e200), "hyperparameters: clip"),
    "hyperparameter of 90 digits": (setting(clip=int("7" * 90)), "'clip': a number of more than 60 digits"),
    "hyperparameter as text of 4,000 digits": (setting(clip="1." + "0" * 4000), "at most 40 characters"),
    "proposal of another dimension": (setting(proposal_sd=[0.1] * 5), "has 5 values, the model has 3"),
    "noise that is not the ledger's": (setting(tau=1e-9), "queries 'log-ratio' are not those of dp-penalty"),
    "noise too small for the budget": (noisier, "budget exceeded"),
    "batch that takes gigabytes to account for": (
        fact(method="dp-barker", accountant="rdp", hyperparameters={"batch_size": 10**9, "proposal_sd": 1}),
        "batch_size: 1000000000 must be at most 10000000",
    ),
    "method with a text": (fact(method="mean is 0.123"), "attribute method"),
    "method rwmh": (fact(method="rwmh"), "hyperparameters: tau: unknown"),
    "method rwmh, with its hyperparameters": (
        fact(method="rwmh", hyperparameters={"clip": 1.0, "proposal_sd": 0.1}),
        "method: rwmh: query 'log-ratio': has no noise",
    ),
    "method of other queries": (fact(method="dp-barker"), "hyperparameters: clip: unknown"),
    "label that fits no algorithm": (
        both(fact(method="mine"), setting(zz=1.0)),
        "method: 'mine': no algorithm has these hyperparameters",
    ),
    "label whose queries fit no algorithm": (
        both(fact(method="mine"), setting(tau=9.0)),
        "method: mine: its hyperparameters have not the ledger's queries",
    ),
    "model with a text": (both(attribute(model="mean 3"), fact(model_id="mean 3")), "attribute model"),
    "accountant with a text": (fact(accountant="row 7"), "attribute accountant"),
    "labels of 3,000 characters": (labelled("x" * 3000, "b", "c"), "labels must be names of 1 to 200"),
    "labels that are equal": (labelled("a", "a", "c"), "labels must be different"),
    "labels with a line break": (labelled("a\nb", "b", "c"), "labels must be names"),
    "description that is no call": (attribute(description="rows " + str(ROWS)), "attribute description"),
    "description that computes": (attribute(description="Own(3 * 4)"), "attribute description"),
    "description nested deeply": (attribute(description="f(" + "[" * 9000), "attribute description"),
    "description of another regression": (
        both(fact(**REGRESSION), attribute(description="PoissonRegression('y', ['a'])")),
        "is not what a LinearRegression writes",
    ),
    "description with odd arguments": (
        both(fact(**REGRESSION), attribute(description="LinearRegression({1: {2: 3}}, 4)")),
        "makes no LinearRegression",
    ),
    "description of other parameters": (
        both(fact(**REGRESSION), attribute(description=LINEAR)),
        "parameter: are not the parameters of the model",
    ),
    "description with a comment": (attribute(description="Own()  # row 7: 3.25"), "attribute description"),
    "description with blanks": (attribute(description="Own(1,  2)"), "attribute description"),
    "description with a line": (attribute(description="Own(\n)"), "attribute description"),
    "description with a number as it is not written": (
        attribute(description="Own(1.50)"),
        "attribute description",
    ),
    "description with a text as it is not written": (
        attribute(description="Own(u'a')"),
        "attribute description",
    ),
    "description with two texts in one": (attribute(description="Own('a' 'b')"), "attribute description"),
    "description with an argument twice": (attribute(description="Own(a=1, a=2)"), "attribute description"),
    "description with a key twice": (attribute(description="Own({1: 2, 1: 3})"), "attribute description"),
    "description with a set, in one of its orders": (
        attribute(description="Own({1, 2})"),
        "attribute description",
    ),
    "description of a model of the catalogue": (
        both(fact(model_id="gauss-30d"), attribute(description=f"Gaussian({ROWS})")),
        "a model of the catalogue has none",
    ),
    "model neither own nor of the catalogue": (
        both(fact(model_id="people"), without("description")),
        "model: 'people' is unknown",
    ),
    "model of the catalogue with another dimension": (
        both(fact(model_id="flat-banana-2d"), without("description")),
        "parameter: are not the parameters of the model",
    ),
    "regression without a description": (linear(None), "description: of a LinearRegression must be the call"),
    "regression of other columns": (linear(SMALL, columns=3), "has other columns than the entry"),
    "sum of 3,000 numbers of a banana": (
        of_numbers(3000, 3000),
        "prices: delta: 1.4473617e-16 must be 9.6490779e-20",
    ),
    "centre of 3,000 numbers of a banana": (
        of_numbers(2, 3000),
        "centre: has 3000 values, must be one or 2",
    ),
    "sum without a number of iterations": (of_sum(5, 5, iterations=None), "does not fit 7 iterations"),
    "version of dpmc with a text": (version("0.1.0+row7.is.3.25"), "attribute dpmc_version"),
    "version of dpmc of long numbers": (version("0.1.7235019"), "attribute dpmc_version"),
    "version of dpmc with zeros": (version("0.01.0"), "attribute dpmc_version"),
    "version of dpmc of four numbers": (version("0.1.0.7"), "attribute dpmc_version"),
    "version of OpenDP of 32 digits": (attribute(opendp_version="0.16." + "72" * 16), "attribute opendp"),
    "version of OpenDP of many numbers": (attribute(opendp_version="0.16.7.3"), "attribute opendp"),
    "acceptance with other low digits": (
        rates(lambda values: np.where(values > 0.5, values - 1e-9, values + 1e-9)),
        "acceptance_rate: must be counts",
    ),
    "acceptance with another last bit": (
        rates(lambda values: np.nextafter(values, 0.75)),
        "acceptance_rate: must be counts",
    ),
    "acceptance −0": (rates(lambda values: -0.0 * values), "acceptance_rate: must be counts"),
    "number of the entry 0": (in_entry(number=0), "number: 0 must be from 1"),
    "epsilon of the entry true": (
        both(attribute(epsilon="1"), in_entry(epsilon=True)),
        "epsilon: True is not what dpmc writes",
    ),
    "epsilon of the entry a whole number": (in_entry(epsilon=1), "epsilon: 1 is not what dpmc writes"),
    "delta of the entry -1": (in_entry(delta=-1.0), "delta = -1.0: must be a number between 0 and 1"),
    "id of the entry a text": (in_entry(id="row 7 is 3.25"), "id: 'row 7 is 3.25' is not what dpmc writes"),
    "about with a further fact": (fact(mean=3.25), "about: 'mean': not allowed"),
    "10^9 chains": (fact(chains=10**9), "attribute chains"),
    "10^9 iterations": (attribute(iterations=10**9), "draw: 3 must be 500000000"),
    "10^9 parameters": (attribute(dimension=10**9), "attribute dimension"),
    "epsilon with more digits": (attribute(epsilon="0.50"), "attribute epsilon"),
    "epsilon inf": (attribute(epsilon="inf"), "attribute epsilon"),
    "delta 1/n": (both(attribute(delta=0.01), in_entry(delta=0.01)), "delta: must be less than 1/n"),
    "temperature above 1": (fact(temperature=1.5), "attribute temperature"),
    "temperature of 32 bits": (attribute(temperature=np.float32(0.5)), "attribute temperature"),
    "n of 32 bits": (attribute(n=np.int32(100)), "attribute n"),
    "schema 999": (attribute(schema=999), "attribute schema"),
    "draws of 32 bits": (of_type("posterior", "theta", "f4"), "'parameter') of float32 must be"),
    "draws of another byte order": (of_type("posterior", "theta", ">f8"), "of >f8 must be"),
    "numbers of chains of 8 bits": (of_type("posterior", "chain", "i1"), "chain: ('chain',) of int8 must be"),
    "totals of 8 bits": (
        lambda tree: tree["sample_stats"].attrs.update(diverging_total=np.array([0, 1], np.int8)),
        "attribute diverging_total",
    ),
    "count 10^30": (in_events(count=10**30), "counts: do not fit"),
    "count 10^400": (in_events(count=10**400), "count = a number of more than 60 digits"),
    "noise multiplier 10^400": (in_events(noise_multiplier=10**400), "noise_multiplier = a number of more"),
    "noise multiplier 1e-300": (in_events(noise_multiplier=1e-300), "are not those of dp-penalty"),
    "sensitivity with a number": (in_events(sensitivity=3.25), "are not those of dp-penalty"),
    "price with a smaller scale": (in_price(least_scale=325.0), "prices: least_scale: 325.0 must be"),
    "price of more iterations": (in_price(numbers=10**8), "prices: "),
    "a delta beside the budget": (in_ledger(lambda own: own.update(delta=3.25e-7)), "['delta']: not allowed"),
    "rows of a person": (in_ledger(lambda own: own.update(rows_per_person=1)), "['rows_per_person']"),
    "foreseen queries": (
        in_ledger(lambda own: own.update(foreseen=own["reserved"] * 2)),
        "['foreseen']: not allowed",
    ),
    "forfeited iterations that were not spare ones": (forfeited(3), "forfeited: 3 are not the spare"),
    "forfeited iterations of a run with another one before": (
        of_hmc(spare=5),
        "forfeited: 5 are not the spare",
    ),
    "queries in another order": (of_hmc(list.reverse), "is not the text of a ledger"),
    "temperature of another tempering": (
        both(linear(SMALL), fact(temperature=0.5)),
        "temperature: must be 1.0",
    ),
    "columns that rows of the model have not": (
        both(fact(model_id="flat-banana-2d", columns=77), without("description")),
        "model: has other columns than the entry",
    ),
    "draws that move though nothing was accepted": (
        both(rates(np.zeros_like), in_stats(accepted_total=np.array([0, 0]))),
        "theta: moves where no proposal was accepted",
    ),
    "a draw that no chain reaches": (
        both(rates(np.ones_like), in_stats(accepted_total=np.array([6, 6])), filled("posterior/theta", 2e30)),
        "no draw beyond 1e+30",
    ),
    "proposals accepted and diverging": (
        both(
            rates(np.ones_like),
            filled("sample_stats/diverging", True),
            in_stats(accepted_total=np.array([6, 6]), diverging_total=np.array([6, 6])),
        ),
        "diverging: no proposal is accepted and diverging",
    ),
    "totals of proposals accepted and diverging": (
        both(
            rates(np.ones_like),
            in_stats(accepted_total=np.array([7, 7]), diverging_total=np.array([0, 1])),
        ),
        "diverging: no proposal is accepted and diverging",
    ),
    "no totals": (lambda tree: tree["sample_stats"].attrs.pop("accepted_total"), "accepted_total is missing"),
    "no version in a group": (
        lambda tree: tree["posterior"].attrs.pop("inference_library_version"),
        "inference_library_version is missing",
    ),
    "budget with other ends": (
        in_ledger(lambda own: own["budget"].update(delta=9.9999951e-7)),
        "delta: budget and price are not the 1e-06",
    ),
    "epsilon spent with another last bit": (low_digit("epsilon_spent"), "epsilon_spent must be"),
    "epsilon spent with all digits": (
        in_ledger(lambda own: own.update(epsilon_spent=ReleaseLedger.from_json(own).epsilon())),
        "epsilon_spent must be",
    ),
    "price of delta with another last bit": (low_digit("prices", 0, "delta"), "prices: delta: "),
    "price of epsilon that is not 0": (low_digit("prices", 0, "epsilon", towards=1.0), "epsilon: 5e-324"),
    "scale of a price with another last bit": (low_digit("prices", 0, "least_scale"), "least_scale: "),
}  # fmt: skip


@pytest.mark.parametrize("name", DOCTORED)
def test_a_doctored_file_is_found(tree: xarray.DataTree, name: str) -> None:
    doctor, words = DOCTORED[name]
    assert release_files.check(tree) == []
    doctor(tree)
    assert words in "\n".join(release_files.check(tree))
    release_files.contents(tree)


def test_what_dpmc_may_also_write_is_accepted(tree: xarray.DataTree) -> None:
    """A label of a study; hyperparameters as in a file; names of parameters that are not ASCII."""
    for doctor in (
        fact(method="mine-1.5"),
        setting(clip="1e0"),
        setting(proposal_sd=[1, 2.5, "3"]),
        labelled("ä b", "=", "c"),
        version("12.0.10rc1"),
        version(__version__),
        attribute(description="Own([1, -2.5], {'a': ('b', None)}, c=1e+300)"),
        without("description"),
        of_sum(3000, 3000),
        of_hmc(),
        of_hmc(spare=0),
        forfeited(0),  # of a release without an output
        of_numbers(2, 2),
    ):
        other = copy.deepcopy(tree)
        doctor(other)
        assert release_files.check(other) == []
    model = dpmc.LinearRegression(
        {"y": (1.5, 2)}, {"a": (0, 2.0)}, levels={"r": ["n", "s"]}, fills={"a": 3}, prior_sd=[1, 2, 3]
    )
    other = copy.deepcopy(tree)
    linear(repr(model), *model.parameters, columns=3)(other)
    assert release_files.check(other) == []


def test_what_a_release_must_not_have_is_refused_before_its_epsilon_is_taken() -> None:
    given = {"model": "Own", "method": "dp-penalty", "accountant": "tight"}
    given |= {"hyperparameters": json.dumps(HYPERPARAMETERS)}
    release_files.refuse(given, ("a", "b"), 2)
    release_files.refuse(given, (), 2)
    for changed, parameters, words in [
        ({"model": "a b"}, (), "model: 'a b': must be a name"),
        ({"method": "x" * 201}, (), "method: "),
        ({}, ("a", "b" * 201), "parameters: labels must be names of 1 to 200"),
        ({"hyperparameters": json.dumps({"clip": "0" * 50 + "1"})}, (), "'clip': .* at most 40 characters"),
        (
            {"accountant": "rdp", "hyperparameters": '{"batch_size": "1e8"}'},
            (),
            "batch_size: '1e8' must be at",
        ),
        ({"method": "mine", "hyperparameters": '{"zz": 1}'}, (), "no algorithm has these hyperparameters"),
    ]:
        with pytest.raises(DpmcError, match=words):
            release_files.refuse({**given, **changed}, parameters, 2)


# -- files ------------------------------------------------------------------------------------------------


def test_arrays_larger_than_the_file_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """Eight terabytes, compressed or never written."""
    path = tmp_path / "bomb.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.mode = "release"
        file.createDimension("x", 10**12)
        file.createVariable("theta", "f8", ("x",), zlib=True, chunksizes=(1024,))
    began = time.perf_counter()
    with pytest.raises(DpmcError, match="arrays larger than the file"):
        release_files.read(path)
    with netCDF4.Dataset(path, "a") as file:
        file.mode = "lab"
    with pytest.raises(DpmcError, match="mode: lab: it is reproducible"):
        release_files.read(path)
    assert time.perf_counter() - began < 5.0


def test_a_billion_chains_take_no_memory(tree: xarray.DataTree) -> None:
    """Under a limit of one gigabyte more than now."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, hard))
    try:
        for doctor in (fact(chains=10**9), attribute(iterations=10**9), attribute(dimension=10**9)):
            other = copy.deepcopy(tree)
            doctor(other)
            assert release_files.check(other)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_texts_are_measured_before_they_are_read(tmp_path: Path) -> None:
    """One long label among 400 would be an array of fixed width; under a limit of 256 MB more than now."""
    texts = np.full(400, "b", object)
    texts[7] = "Q" * 1_000_000
    for name, values in {"long": texts, "many": np.full(10_001, "b", object)}.items():
        with netCDF4.Dataset(tmp_path / name, "w") as file:
            file.createDimension("parameter", len(values))
            file.createGroup("deep").createVariable("parameter", str, ("parameter",))[:] = values
    with netCDF4.Dataset(tmp_path / "ragged", "w") as file:
        file.createDimension("parameter", 2)
        file.createVariable("parameter", file.createVLType(np.float64, "row"), ("parameter",))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, hard))
    try:
        for name, words in (
            ("long", "'parameter': has a text of 1000000 characters"),
            ("many", "'parameter': has 10001 texts, at most 10000"),
            ("ragged", "'parameter': has entries of any length"),
        ):
            for read in (release_files.read, as_tree, chain_files.read_chain):
                with pytest.raises(DpmcError, match=words):
                    read(tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("mode", [np.array([1.0, 2.0]), np.zeros(0), ["release", "lab"], 3])
def test_a_mode_that_is_no_text_is_no_release(tmp_path: Path, mode: Any) -> None:
    with netCDF4.Dataset(tmp_path / "odd.nc", "w") as file:
        file.mode = mode
    tree = release_files.read(tmp_path / "odd.nc")
    assert any("attribute mode" in text for text in release_files.check(tree))
    release_files.contents(tree)
    for use in (release_files.entry_of, as_tree, dpmc.summary):
        with pytest.raises(DpmcError):
            use(tmp_path / "odd.nc")
    assert main(["check-release", str(tmp_path / "odd.nc"), "--quiet"]) == 2


# -- each leaf --------------------------------------------------------------------------------------------

NESTED, LONG = "nested a thousand deep", "of five thousand digits"  #: stand for what `json` does not write
REPEATED = release_files.REPEATED
ODD = [True, None, [], {}, "x" * 5000, 10**400, -1, 1.5, math.nan, math.inf, "1", NESTED, LONG]


def leaves(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a JSON value, containers included."""
    if path:
        yield path
    for key in (
        content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    ):
        yield from leaves(content[key], (*path, key))


def put(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    content = copy.deepcopy(content)
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


def text_of(content: Any, **options: Any) -> str:
    text = json.dumps(content, **options)
    text = text.replace(json.dumps(NESTED), "[" * 1000 + "]" * 1000)
    return text.replace(json.dumps(LONG), "7" * 5000)


def odd_releases(tree: xarray.DataTree) -> Iterator[tuple[str, Any, dict[str, Any], str]]:
    """Yield name of the place, odd value, attributes of the root, and the group that has the attribute."""
    for group in tree.subtree:
        for key in group.attrs:
            for odd in ODD:
                value = [[[0]]] if odd is NESTED else 10**5000 if odd is LONG else odd
                yield key, odd, {**group.attrs, key: value}, group.path
    for key in ("hyperparameters", "ledger", "data_ledger"):
        content = json.loads(tree.attrs[key])
        for path in leaves(content):
            for odd in ODD:
                changed, attrs = put(content, path, odd), dict(tree.attrs)
                if key == "data_ledger" and path != ("hash",):
                    with suppress(ValueError):  # NaN has no hash
                        changed = data_ledger._sealed({k: v for k, v in changed.items() if k != "hash"})
                attrs[key] = text_of(changed, sort_keys=True)
                if path[0] == "about" and path[1:2] != () and path[1] in REPEATED:  # consistently
                    own = changed["about"][path[1]]
                    attrs[path[1]] = text_of(own, sort_keys=True) if path[1] == "hyperparameters" else own
                yield "/".join(map(str, (key, *path))), odd, attrs, "/"


#: Odd values that say nothing wrong: other numbers that a run may have had, or the same ones.
ACCEPTED = {
    ("data_ledger/about/hyperparameters/clip", 1.5),
    ("data_ledger/about/hyperparameters/clip", "1"),
    ("data_ledger/about/hyperparameters/proposal_sd", 1.5),
    ("data_ledger/about/hyperparameters/proposal_sd", "1"),
    ("data_ledger/about/iterations", None),  # as it was
    ("data_ledger/about/method", "1"),  # a label
    ("model", "1"),
    ("ledger/accountant/version", "1"),  # as it was
    *((f"ledger/{part}/0/sensitivity", None) for part in ("reserved", "performed", "forfeited")),  # as it was
}  # fmt: skip


def test_an_odd_value_in_any_place_is_a_problem_and_never_another_error(tree: xarray.DataTree) -> None:
    accepted, tried = set(), 0
    for name, odd, attrs, group in odd_releases(tree):
        other = tree.copy()
        other[group].attrs = attrs
        tried += 1
        if not release_files.check(other):
            accepted.add((name, odd))
        release_files.contents(other)
    assert tried > 1000
    assert accepted == ACCEPTED
