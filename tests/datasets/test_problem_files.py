"""Files of problems: each text that names something must be there."""

from pathlib import Path

import numpy as np
import pytest
import xarray

from dpmc.common.errors import DpmcError
from dpmc.data.datasets import build
from dpmc.data.problem import read_problem


@pytest.mark.parametrize("name", ["label", "model", "dataset"])
@pytest.mark.parametrize("value", ["", np.float64(1.0)])
def test_an_empty_name_is_refused_and_named(name: str, value: object, tmp_path: Path) -> None:
    build("circle", "circle", "tuning", 50, 2).write(tmp_path / "whole.nc")
    with xarray.open_dataset(tmp_path / "whole.nc") as whole:
        whole.load().assign_attrs({name: value}).to_netcdf(tmp_path / "changed.nc")
    with pytest.raises(DpmcError, match=f"changed.nc: {name}: .* must be a text"):
        read_problem(tmp_path / "changed.nc")
    assert read_problem(tmp_path / "whole.nc").label == "circle"
