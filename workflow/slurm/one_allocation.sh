#!/bin/bash
# Run a whole study inside one Slurm job, on the cores of one node: its jobs neither wait in the queue nor
# need seconds of Slurm to start. Recommended for studies of minutes to an hour.
#
#     sbatch [--partition=... --account=...] workflow/slurm/one_allocation.sh [study ...]
#
# Its output goes to dpmc-<job>.log in the folder where sbatch was called, which must be the project's. When
# the time is over, the same command resumes the run.
#SBATCH --job-name=dpmc
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=32
#SBATCH --mem-per-cpu=1000
#SBATCH --time=02:00:00
#SBATCH --output=dpmc-%j.log
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
exec .venv/bin/python workflow/run.py --cores "$SLURM_CPUS_ON_NODE" "$@"
