<<<<<<< HEAD
# dpmc: data -> tuning -> sampling -> evaluation -> figures, for every study that config/config.yaml names (`studies`).
#
#   data/<study>/<model>/<data set>.nc                                    rows, start points, exact draws
#   results/<study>/budgets.csv                                           iterations of all cells, and the ε they spend
#   results/<study>/tuning/<model>/<method>.yaml                          hyperparameters and their trial
#   results/<study>/chains/<model>/<method>/eps-<epsilon>/seed-<seed>.nc  chains
#   results/<study>/metrics.csv                                           metrics, one value a row
#   results/<study>/traces/<model>.csv                                    metrics along the chains
#   results/<study>/spending.txt                                          total ε of all runs on your own rows
#   results/<study>/clipping.csv, published_comparison.csv, table.csv      tables
#   results/<study>/claims.yaml                                           verdicts on the source's sentences
#   figures/<study>/<figure>.pdf|png, <table>.csv|md|tex, index.html (all of them on one page)
#
# Targets: the name of a study (`snakemake --cores 4 smoke`), or any file above; default: the study
# named in config/config.yaml.
from snakemake.utils import min_version

min_version("9.27")
=======
# The pipeline is in workflow/Snakefile; with this file, `snakemake` in this folder loads profiles/default, too.
include: "workflow/Snakefile"
>>>>>>> pipe


# Snakemake ignores the default target of an included file.
use rule default as study
