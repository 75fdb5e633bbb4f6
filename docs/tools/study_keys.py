"""Print the keys of a study's file: `python docs/tools/study_keys.py [--schema]`.

As Markdown, with the keys of its figures, for config/README.md; or as JSON schema for editors, which is
config/study.schema.json.
"""

import argparse
import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from dpmc.studies.figures import Across, Axis, FigureKeys, Line, Panel
from dpmc.studies.keys import Keys, MethodSpec, ModelSpec, RepeatedSpec, StudyKeys, Tuning

SECTIONS: dict[str, type[Keys]] = {
    "": StudyKeys,
    "tuning": Tuning,
    "models.<label>": ModelSpec,
    "methods.<label>": MethodSpec,
    "repeated.<label>": RepeatedSpec,
    "<figure>": FigureKeys,
    "<figure>.x": Across,
    "<figure>.y": Axis,
    "<figure>.lines": Line,
    "<figure>.panels": Panel,
}


def lists() -> str:
    """Return a Markdown list of the keys of each mapping of the file."""
    parts = []
    for title, declaration in SECTIONS.items():
        schema = declaration.model_json_schema()
        lines = [f"### `{title}`", ""] if title else []
        for key, about in schema["properties"].items():
            given = about.get("default")
            default = "needed" if key in schema.get("required", ()) else f"default `{given}`" if given else ""
            notes = "; ".join(note for note in (_rule(about), default) if note)
            lines.append(f"- `{key}`: {about['description']}" + (f" ({notes})" if notes else ""))
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def _rule(about: dict[str, Any]) -> str:
    """Return the rule of a value in words, from pydantic's JSON schema; "" for a text or a mapping."""
    if "rule" not in about:
        about = next((part for part in about.get("anyOf", ()) if part.get("type") != "null"), about)
    if "rule" in about:
        return str(about["rule"])
    if "enum" in about:
        return " or ".join(f"`{value}`" for value in about["enum"])
    if about.get("type") == "integer":
        return "whole"
    if about.get("type") == "array":
        return f"list, each {rule}" if (rule := _rule(about["items"])) else "list"
    return "`true` or `false`" if about.get("type") == "boolean" else ""


def study_schema() -> str:
    """Return the JSON schema of a study's file. It knows keys and types, not rules that join several keys."""
    head = {"$schema": GenerateJsonSchema.schema_dialect, "title": "A study of dpmc"}
    schema = StudyKeys.model_json_schema()
    return json.dumps(schema | head, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--schema", action="store_true", help="print the JSON schema of a study's file")
    print(study_schema() if options.parse_args().schema else lists(), end="")
