"""Print the keys of a study's file, and of its figures, as Markdown, for config/README.md."""

from typing import Any

from dpmc.studies.figures import Across, Axis, FigureKeys, Line, Panel
from dpmc.studies.keys import Keys, MethodSpec, ModelSpec, StudyKeys, Tuning, described

TITLES: dict[str, type[Keys]] = {
    "": StudyKeys,
    "tuning": Tuning,
    "models.<label>": ModelSpec,
    "methods.<label>": MethodSpec,
    "<figure>": FigureKeys,
    "<figure>.x": Across,
    "<figure>.y": Axis,
    "<figure>.lines": Line,
    "<figure>.panels": Panel,
}


def tables() -> str:
    """Return a Markdown table for each mapping of the file."""
    parts = []
    for title, declaration in TITLES.items():
        head = f"### `{title}`\n\n" if title else ""
        rows = "".join(f"| {' | '.join(row)} |\n" for row in _rows(declaration))
        parts.append(f"{head}| key | meaning | must be | default |\n| --- | --- | --- | --- |\n{rows}")
    return "\n".join(parts)


def _rows(declaration: type[Keys]) -> list[list[str]]:
    schema = declaration.model_json_schema()
    found = []
    for key in described(declaration):
        about = schema["properties"][key]
        given = about.get("default")
        default = "needed" if key in schema.get("required", ()) else f"`{given}`" if given else ""
        found.append([f"`{key}`", about["description"].replace("|", r"\|"), _rule(about), default])
    return found


def _rule(about: dict[str, Any]) -> str:
    """Return the rule of a value in words, from pydantic's JSON schema."""
    about = next((one for one in about.get("anyOf", ()) if one.get("type") != "null"), about)
    if "rule" in about:
        return str(about["rule"])
    if "enum" in about:
        return " or ".join(f"`{value}`" for value in about["enum"])
    if about.get("type") == "integer":
        return f"whole, {about['minimum']} to {about['maximum']:,}"
    if about.get("type") == "array":
        return f"list, each {_rule(about['items'])}"
    return {"string": "text", "boolean": "`true` or `false`"}.get(about.get("type", ""), "mapping")


if __name__ == "__main__":
    print(tables(), end="")
