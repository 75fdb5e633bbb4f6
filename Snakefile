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


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/tuning.smk"
include: "workflow/rules/sampling.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/traces.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/claims.smk"


# In this file, because Snakemake ignores the default target of an included file.
rule default:
    """the study named in config/config.yaml, or by --config study=<name>"""
    default_target: True
    input:
        all_of(STUDIES if config["study"] == "all" else [config["study"]]),


rule all:
    """every study"""
    input:
        all_of(STUDIES),


for study in STUDIES:

    rule:
        """all figures and tables of this study"""
        name:
            study
        input:
            all_of([study]),


# Fill numba's cache in one process, so that dozens of jobs do not compile the same kernels at once.
onstart:
    shell("{sys.executable:q} -m dpmc.sampling")
