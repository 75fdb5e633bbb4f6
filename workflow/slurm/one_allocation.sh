#!/bin/bash
# A whole study inside one Slurm job, on the cores of one node: no job waits in the queue again, and
# none pays Slurm's seconds. The better way for studies of minutes to an hour.
#
#     sbatch [--partition=... --account=...] workflow/slurm/one_allocation.sh [study ...]
#
# What it prints goes to dpmc-<job>.log in the folder where sbatch was typed: the project's. When the
# time is over, the same command goes on where this job was stopped.
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
