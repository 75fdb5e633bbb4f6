"""Print the total ε of all runs of a study on the user's own rows, one line for each file of rows.

python workflow/scripts/spending.py <study> results/<study>/chains/.../seed-<seed>.nc ...
"""

import json
import sys
from pathlib import Path

from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import Chains, read_chain
from dpmc.metrics.spending import tight_epsilon
from dpmc.metrics.summary import epsilon_text
from dpmc.privacy.events import from_json, merge
from dpmc.studies import load_study

study = load_study(sys.argv[1])
chains_on: dict[Path, list[Chains]] = {}
for chain in map(read_chain, sys.argv[2:]):
    if rows := study.model(str(chain.attrs["model"])).rows_file:
        chains_on.setdefault(rows, []).append(chain)
for rows, chains in chains_on.items():
    ledgers = [json.loads(str(chain.attrs["ledger"])) for chain in chains]
    queries = [event for ledger in ledgers for event in (*ledger["performed"], *ledger["forfeited"])]
    delta = study.delta_for(int(chains[0].attrs["n"]))
    try:
        spent = f"epsilon {epsilon_text(tight_epsilon(merge(from_json(queries)), delta))}"
    except DpmcError:
        spent = "an epsilon that no accountant of dpmc bounds"
    methods = ", ".join(dict.fromkeys(str(chain.attrs["method"]) for chain in chains))
    print(f"{rows.name}: {len(chains)} runs of {methods} spent {spent} together, at delta {delta:.3g}")
print("Not included: runs elsewhere, and chains that were removed or made anew.")
