"""Targets: a misspelt study or file is refused before Snakemake finds no rule for it."""

import difflib
import re
from collections.abc import Collection, Mapping

from dpmc.common.errors import DpmcError
from dpmc.studies.study import Study

_TO_CELL = r"(?P<model>[^/]+)/(?P<method>[^/]+)"
FILES = [
    re.compile(pattern)
    for pattern in (
        rf"results/(?P<study>[^/]+)/chains/{_TO_CELL}/eps-(?P<epsilon>[^/]+)/seed-(?P<seed>[^/]+)\.nc",
        rf"results/(?P<study>[^/]+)/(?:tuning|search)/{_TO_CELL}\.yaml",
        r"results/(?P<study>[^/]+)/(?:metrics|traces)/(?P<model>[^/]+)\.csv",
        r"data/(?P<study>[^/]+)/(?P<model>[^/]+)/[^/]+\.nc",
        r"(?:results|figures)/(?P<study>[^/]+)/.+",
        r"(?P<study>[a-z0-9][a-z0-9.-]*)",
    )
]


def check_target(path: str, studies: Mapping[str, Study]) -> None:
    """Raise DpmcError for a misspelt study, or a file of one with an unknown model, method, ε or seed.

    A word or folder that is nearly called as a study is taken for misspelt; any other may be the user's own.
    """
    named = next((found.groupdict() for pattern in FILES if (found := pattern.fullmatch(path))), None)
    if named is None:
        return
    study = studies.get(named["study"])
    if study is None:
        if difflib.get_close_matches(named["study"], studies, 1, 0.75):
            _known(path, "study", named["study"], studies)
        return
    if model := named.get("model"):
        _known(path, "model", model, study.models)
    if (method := named.get("method")) and model:
        _known(path, "method", method, study.methods)
        about = study.methods[method]
        _known(path, "model", model, about.models, f" of {method}")
        if about.from_study:
            there = path.replace(f"results/{study.name}/", f"results/{about.from_study}/")
            raise DpmcError(f"{path}: {study.name} takes {method} from another study; it is {there}")
        if epsilon := named.get("epsilon"):
            _known(path, "epsilon", epsilon, study.epsilons(model, method), f" of {method} on {model}")
    if seed := named.get("seed"):
        seeds = list(map(str, range(study.seeds)))
        if seed not in seeds:
            raise DpmcError(f"{path}: seed: {seed!r} must be 0 to {seeds[-1]}, by seeds of {study.name}")


def check_file(path: str, outputs: Collection[str], studies: Mapping[str, Study]) -> None:
    """Raise DpmcError for a file in the folders of a study that no rule makes.

    `outputs` are those of the rules, with wildcards in braces, each a part of a file's or folder's name.
    """
    named = re.fullmatch(r"(?:data|results|figures)/([^/]+)/.+", path)
    if named is None or named[1] not in studies:
        return
    of_study = [re.sub(r"\{study\b[^}]*\}", named[1], output) for output in outputs]
    of_study = [re.sub(r"\{(\w+)[^}]*\}", r"{\1}", output) for output in of_study]  # without constraints
    patterns = ("[^/]+".join(map(re.escape, re.split(r"\{[^}]*\}", output))) for output in of_study)
    if not any(re.fullmatch(pattern, path) for pattern in patterns):
        near = difflib.get_close_matches(path, of_study, 1, 0.6)
        raise DpmcError(f"{path}: no rule makes it{f'; did you mean {near[0]}?' if near else ''}")


def _known(path: str, what: str, name: str, known: Collection[str], whose: str = "") -> None:
    """Raise DpmcError unless a name is known."""
    if name not in known:
        near = difflib.get_close_matches(name, known, 1, 0.6)
        meant = f"did you mean {near[0]}? " if near else ""
        raise DpmcError(f"{path}: {what}: {name!r} is unknown; {meant}known{whose}: {', '.join(known)}")
