# The pipeline is in workflow/Snakefile; with this file, `snakemake` in this folder loads profiles/default, too.
include: "workflow/Snakefile"


# Snakemake ignores the default target of an included file.
use rule default as study
