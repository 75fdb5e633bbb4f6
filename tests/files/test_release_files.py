"""The closed list of what a release may contain: each part that is not on it is found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray

import dpmc
from dpmc.common.errors import DpmcError
from dpmc.common.files import write_netcdf
from dpmc.privacy import data_ledger
from dpmc.privacy.ledger import ReleaseLedger
from dpmc.releases import files as release_files
from files.release_tree import entry, release_tree


@pytest.fixture
def tree(tmp_path: Path) -> xarray.DataTree:
    return release_tree(entry(tmp_path / "people.ledger"))


@pytest.fixture
def path(tmp_path: Path, tree: xarray.DataTree) -> Path:
    """A release on disk."""
    release_files.write(tmp_path / "release.nc", tree)
    return tmp_path / "release.nc"


def problems(path: Path) -> list[str]:
    """Return all problems of a file."""
    tree = release_files.read(path)
    return release_files.check(tree) or release_files.hidden(path, tree)


def test_a_release_has_no_problem_in_memory_and_on_disk(tree: xarray.DataTree, path: Path) -> None:
    assert release_files.check(tree) == []
    assert problems(path) == []
    xarray.testing.assert_identical(xarray.load_datatree(path), tree)
    assert release_files.entry_of(path) == json.loads(tree.attrs["data_ledger"])
    said = "\n".join(release_files.contents(release_files.read(path)))
    assert "epsilon '0.5', delta 1e-06" in said and "theta (chain 2, draw 3, parameter 3) float64" in said


def test_the_size_of_a_file_does_not_depend_on_values(
    tree: xarray.DataTree, path: Path, tmp_path: Path
) -> None:
    for value in (0.0, 1e29, 1 / 3):
        tree["posterior/theta"][:] = value
        tree["sample_stats/acceptance_rate"][:] = float(value > 0)
        tree["sample_stats"].attrs["accepted_total"] = np.array([7, 6]) if value > 0 else np.array([1, 0])
        release_files.write(tmp_path / "other.nc", tree)
        assert (tmp_path / "other.nc").stat().st_size == path.stat().st_size


def test_parameters_without_names_are_numbered(tree: xarray.DataTree) -> None:
    for name in ("posterior", "constant_data"):
        tree[name] = tree[name].to_dataset().assign_coords(parameter=np.arange(3))
    assert release_files.check(tree) == []
    tree["posterior"] = tree["posterior"].to_dataset().assign_coords(parameter=[0, 1, 70])
    assert "parameter: labels" in release_files.check(tree)[0]


def test_a_lab_chain_is_refused_with_its_reason(tmp_path: Path) -> None:
    model = dpmc.LinearRegression("y", ["x"])
    setting = {"tau": 1, "clip": 3, "proposal_sd": 0.1}
    options: dict[str, Any] = {"hyperparameters": setting, "iterations": 3, "progress": False}
    lab = dpmc.sample(model, model.simulate(np.random.default_rng(1), np.zeros(2), 50), epsilon=2, **options)
    assert release_files.check(lab) == [release_files.LAB]
    with pytest.raises(DpmcError, match="reproducible from its seed"):
        release_files.write(tmp_path / "release.nc", lab)
    assert not (tmp_path / "release.nc").exists()
    lab.attrs["mode"] = "release"  # by hand
    found = "\n".join(release_files.check(lab))
    assert "/private_diagnostics: group is not allowed" in found
    assert "attribute 'seed' is not allowed" in found and "data_ledger is missing" in found
    lab.to_netcdf(tmp_path / "lab.nc")
    with pytest.raises(DpmcError, match="private_diagnostics: group is not allowed"):
        release_files.entry_of(tmp_path / "lab.nc")


Change = Callable[[netCDF4.Dataset], object]


def put(place: str, **attributes: Any) -> Change:
    """Set attributes of a group or a variable."""
    return lambda file: (file[place] if place else file).setncatts(attributes)


def variable(group: str, name: str, kind: Any, dims: tuple[str, ...], **keywords: Any) -> Change:
    return lambda file: file[group].createVariable(name, kind, dims, **keywords)


def fill(place: str, value: Any) -> Change:
    def change(file: netCDF4.Dataset) -> None:
        file[place][:] = value

    return change


def entry_with(**changed: Any) -> Change:
    def change(file: netCDF4.Dataset) -> None:
        entry = {**json.loads(file.data_ledger), **changed}
        if "about" in changed:
            entry = data_ledger._sealed({key: entry[key] for key in entry if key != "hash"})
        file.data_ledger = json.dumps(entry, sort_keys=True)

    return change


def entry_about(**facts: Any) -> Change:
    """Change facts of a run in its entry, and the entry's hash with them."""

    def change(file: netCDF4.Dataset) -> None:
        about = {**json.loads(file.data_ledger)["about"], **facts}
        entry_with(about=about)(file)

    return change


def ledger_with(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change the ledger of the run, as an object."""

    def changed(file: netCDF4.Dataset) -> None:
        own = json.loads(file.ledger)
        change(own)
        file.ledger = json.dumps(own)

    return changed


def cheaper(own: dict[str, Any]) -> None:
    own["prices"][0]["delta"] *= 0.5
    own["budget"]["delta"] = 1e-6 - own["prices"][0]["delta"]


def times(factor: float, *keys: str) -> Callable[[dict[str, Any]], object]:
    """Multiply counts of queries; ε is computed again."""

    def change(own: dict[str, Any]) -> None:
        for event in (event for key in keys for event in own[key]):
            event["count"] = int(event["count"] * factor)
        if keys != ("reserved",) and factor < 1:
            ledger = ReleaseLedger.from_json(own)
            own.update({key: ledger.to_json()[key] for key in ("epsilon_spent", "mu")})

    return change


def named(name: str) -> Callable[[dict[str, Any]], object]:
    def change(own: dict[str, Any]) -> None:
        for event in (event for key in ("reserved", "performed", "forfeited") for event in own[key]):
            event["name"] = name

    return change


def twice(attribute: str) -> Change:
    """Put a key at the front of a JSON object that has it already: a reader sees the last one."""

    def change(file: netCDF4.Dataset) -> None:
        text = file.getncattr(attribute)
        key = next(iter(json.loads(text)))
        file.setncattr(attribute, f'{{"{key}": "row 7 is 3.25", {text[1:]}')

    return change


#: Change of a file -> words of the problem.
CHANGES: list[tuple[Change, str]] = [
    (lambda file: file.createGroup("private_diagnostics"), "/private_diagnostics: group is not allowed"),
    (lambda file: file.createGroup("posterior/deep"), "/posterior/deep: group is not allowed"),
    (lambda file: file.createDimension("people", None), "unlimited dimensions: 'people'"),
    (lambda file: file["posterior"].createDimension("seven", 7), "bytes"),
    (lambda file: file.createVLType(np.float64, "ragged"), "bytes"),
    (lambda file: file.createEnumType(np.int8, "mood", {"high": 1}), "bytes"),
    (variable("posterior", "phi", "f8", ("chain",)), "/posterior: variable 'phi' is not allowed"),
    (variable("sample_stats", "ratio_clipped", "i8", ("chain", "draw")), "'ratio_clipped' is not allowed"),
    (put("", history="cut out of rows.csv"), "/: attribute 'history' is not allowed"),
    (put("", seed=0), "/: attribute 'seed' is not allowed"),
    (put("", dataset="people"), "/: attribute 'dataset' is not allowed"),
    (put("posterior", ratio_clipped_total=[1, 2]), "/posterior: attribute 'ratio_clipped_total'"),
    (put("posterior/theta", units="cm"), "theta: attribute 'units' is not allowed"),
    (put("posterior/theta", missing_value=0.0), "theta: attribute 'missing_value' is not allowed"),
    (put("", mode="public"), "attribute mode: 'public'"),
    (put("", n=[1, 2]), "attribute n"),
    (put("", epsilon="0"), "attribute epsilon"),
    (put("", epsilon="0.6"), "epsilon, delta: are not those of the entry"),
    (put("", delta=2e-6), "epsilon, delta: are not those of the entry"),
    (put("", iterations=9), "draw: 3 must be 4"),
    (put("", chains=3), "chain: 2 must be 3"),
    (put("", dimension=2), "parameter: 3 must be 2"),
    (put("", hyperparameters="[1]"), "attribute hyperparameters"),
    (put("", hyperparameters="{"), "attribute hyperparameters"),
    (put("", ledger='{"mode": "release"}'), "/: ledger: missing or malformed key"),
    (ledger_with(lambda own: own.update(mode="lab")), "is not the text of a ledger"),
    (ledger_with(lambda own: own["prices"].append({"rows": [3.25]})), "prices: must be one"),
    (ledger_with(lambda own: own["prices"][0].update(rows=[3.25])), "prices: must be one"),
    (
        ledger_with(lambda own: own["prices"][0].update(bound="3.25")),
        "prices: bound: '3.25' must be total variation",
    ),
    (ledger_with(lambda own: own["prices"][0].update(numbers=15)), "prices: numbers: are not those of whole"),
    (ledger_with(cheaper), "prices: delta: 5.7894"),
    (ledger_with(lambda own: own["budget"].update(epsilon=1e6)), "epsilon: budget and price are not the 0.5"),
    (ledger_with(lambda own: own["budget"].update(delta=1e-6)), "delta: budget and price are not the 1e-06"),
    (ledger_with(times(10**6, "reserved", "performed")), "counts: do not fit"),
    (ledger_with(times(2, "reserved")), "counts: do not fit 7 iterations and 5 "),
    (ledger_with(times(0.5, "reserved", "performed", "forfeited")), "counts: do not fit 7 iterations"),
    (ledger_with(named("row 7 is 3.25")), "queries 'row 7 is 3.25' are not those of dp-penalty"),
    (ledger_with(lambda own: own.update(epsilon_spent=0.25)), "epsilon_spent must be 0.185"),
    (ledger_with(lambda own: own.update(mu="3.25")), "is not the text of a ledger"),
    (ledger_with(lambda own: own.update(neighbours="row 7")), "is not the text of a ledger"),
    (twice("ledger"), "/: ledger: is not the text of a ledger"),
    (twice("data_ledger"), "each of them once"),
    (twice("hyperparameters"), "each of them once"),
    (put("", accountant="zcdp"), "accountant: not as in the entry"),
    (put("", forfeited=999), "forfeited: 999 are not the spare iterations of 7"),
    (put("", forfeited=0), "counts: do not fit 7 iterations and 0"),
    (put("", model="3.25, " * 40), "attribute model"),
    (put("", opendp_version="row 7 is 3.25"), "attribute opendp_version"),
    (fill("constant_data/theta_0", 3.25), "theta_0: is not the start of the entry"),
    (fill("posterior/theta", np.nan), "theta, theta_0: must be finite"),
    (put("", ledger='{"mode": "release", "clipped": 7}'), 'ledger: \'{"mode"'),
    (entry_with(epsilon=0.25), "attribute data_ledger"),
    (entry_with(rows=0.25), "attribute data_ledger"),
    (entry_with(about={"clipped": 7}), "about: 'clipped': not allowed"),
    (entry_with(about={"method": "dp-hmc", "n": 100}), "start, temperature, thin': missing"),
    (put("", method="dp-hmc", n=99), "/: method, n: not as in the entry"),
    (put("sample_stats", accepted_total=[1]), "accepted_total: must have one number for each chain"),
    (put("sample_stats", accepted_total=[1.5, 2]), "attribute accepted_total"),
    (put("sample_stats", accepted_total=[3, 5321]), "accepted_total: does not fit the draws"),
    (put("sample_stats", diverging_total=[0, 7]), "diverging_total: does not fit the draws"),
    (put("sample_stats", inference_library="row 7 is 3.25"), "inference_library: 'row 7 is 3.25'"),
    (put("posterior", inference_library_version="0.3.25"), "must be that of dpmc, as in the root"),
    (put("", opendp_version="0.14.1"), "attribute opendp_version"),
    (entry_about(run="row 7"), "run: must be 32 hexadecimal digits"),
    (entry_about(model_values="3.25"), "model_values: must be 64 hexadecimal digits"),
    (entry_about(columns="row 7"), "columns: must be a whole number"),
    (entry_about(model_id="row\n7"), "must be a name"),
    (entry_about(iterations=9), "entry in data_ledger: does not fit 7 iterations"),
    (fill("posterior/chain", [0, 5]), "chain: labels"),
    (fill("posterior/draw", [2, 4, 7]), "draw: labels"),
    (fill("sample_stats/acceptance_rate", 0.3), "acceptance_rate: must be counts from 0 to 2"),
    (fill("sample_stats/acceptance_rate", 2.0), "acceptance_rate: must be counts from 0 to 2"),
    (fill("sample_stats/acceptance_rate", np.nan), "acceptance_rate: must be counts from 0 to 2"),
    (lambda file: file.delncattr("n"), "/: n is missing"),
    (lambda file: file["posterior"].renameVariable("theta", "tau"), "theta is missing"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_what_is_not_allowed_in_a_file_is_found(path: Path, change: Change, words: str) -> None:
    with netCDF4.Dataset(path, "a") as file:
        change(file)
    assert words in "\n".join(problems(path))


def test_bytes_beside_the_content_are_found(path: Path, tree: xarray.DataTree) -> None:
    content = path.read_bytes()
    path.write_bytes(content + b"row 7 is 3.2")
    assert "may be hidden" in problems(path)[0]
    # A number left in the place of an attribute that was removed.
    path.write_bytes(content)
    with netCDF4.Dataset(path, "a") as file:
        file.setncattr("row", 3.25)
    with netCDF4.Dataset(path, "a") as file:
        file.delncattr("row")
    assert release_files.check(release_files.read(path)) == []
    assert "may be hidden" in problems(path)[0]
    # Written by xarray as it likes, with fill values.
    tree.to_netcdf(path)
    assert "theta: attribute '_FillValue' is not allowed" in "\n".join(problems(path))


@pytest.mark.parametrize("of", ["attributes", "variables", "groups"])
def test_another_order_is_found(path: Path, tree: xarray.DataTree, of: str) -> None:
    """The orders of twenty attributes are 20! texts."""
    whole = release_files.read(path)
    groups = {group.path: group.to_dataset(inherit=False) for group in whole.subtree}
    if of == "groups":
        groups = dict(reversed(groups.items()))
    for name, group in groups.items():
        content = dict(group.variables)
        if of == "variables":
            content = dict(reversed(content.items()))
        attrs = dict(reversed(group.attrs.items())) if of == "attributes" else group.attrs
        groups[name] = xarray.Dataset(content, attrs=attrs)
    encoding = {
        name: {key: {"_FillValue": None} for key in group.variables} for name, group in groups.items()
    }
    write_netcdf(path, xarray.DataTree.from_dict(groups), encoding)
    assert release_files.check(release_files.read(path)) == []
    assert "may be hidden" in problems(path)[0]
    release_files.write(path, release_files.read(path))
    assert problems(path) == []


def test_other_versions_of_the_library_are_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(path.read_bytes() + b"0")
    monkeypatch.setattr(release_files, "_library", lambda file: f"version of {Path(file).name}")
    (found,) = problems(path)
    assert "cannot be compared" in found and "version of release.nc wrote them" in found


def test_a_ledger_is_not_verified_against_a_release_that_was_changed(path: Path) -> None:
    with netCDF4.Dataset(path, "a") as file:
        file["constant_data/theta_0"][:] = 3.25
    with pytest.raises(DpmcError, match="moves where no proposal was accepted"):
        release_files.entry_of(path)
