# Install dpmc in an environment that Snakemake has just made of environment.yml
# (--software-deployment-method conda), which Snakemake runs this script in. An editable installation, so that
# jobs run the code of the clone as it is. workflow/rules/common.smk sets DPMC_ROOT: neither the working
# directory nor the folder of this script, a copy, need be the clone.
set -eu
if [ ! -f "$DPMC_ROOT/pyproject.toml" ]; then
    echo "dpmc: error: --software-deployment-method conda works with dpmc installed from a clone only" >&2
    exit 1
fi
python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable "$DPMC_ROOT"
