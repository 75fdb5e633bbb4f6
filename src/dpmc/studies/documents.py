"""Reading of YAML files: unique text keys, and the line of every key."""

import functools
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from dpmc.common.errors import DpmcError
from dpmc.common.values import decimal, shown, whole_number

#: The loader in C, eight times as fast, if PyYAML was built with it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document(NamedTuple):
    """The content of a YAML file with the lines of its keys. Cached; treat as read-only."""

    path: Path
    content: Any
    lines: dict[int, dict[str, int]]  # id of a mapping in `content` -> key -> line

    def place(self, *keys: str | int) -> str:
        """Return file, line and keys for the start of an error; the line is that of the last key found."""
        line, inner = 0, self.content
        for key in keys:
            if isinstance(inner, list) and isinstance(key, int) and key < len(inner):
                inner = inner[key]
            elif isinstance(inner, dict) and key in inner:
                line, inner = self.lines.get(id(inner), {}).get(str(key), 0), inner[key]
            else:
                break
        return ": ".join([str(self.path), *([f"line {line}"] if line else []), *map(str, keys)])

    def refuse(self, *keys: str | int, rule: str) -> NoReturn:
        """Raise DpmcError naming file, line, keys and rule."""
        raise DpmcError(f"{self.place(*keys)}: {rule}")

    def require(self, value: str, known: Collection[str], *keys: str | int) -> None:
        """Raise DpmcError with the known values unless `value` is one of them."""
        if value not in known:
            self.refuse(*keys, rule=f"{value!r} is unknown; known: {', '.join(dict.fromkeys(known))}")

    @contextmanager
    def blamed(self, *keys: str | int) -> Iterator[None]:
        """Put file, line and keys before the message of a DpmcError raised within this context."""
        try:
            yield
        except DpmcError as error:
            self.refuse(*keys, rule=str(error).removeprefix(f"{keys[-1]}: "))


def beside(study: Path, folder: str, name: str) -> Path:
    """Return <folder>/<name> in the folder of a study's file if it is there, else beside that folder."""
    within = study.parent / folder / name
    return within if within.is_file() else study.parent.parent / folder / name


def read_yaml(path: Path) -> Any:
    """Read a YAML file; raise DpmcError if that fails, for a key that stands twice or is no text."""
    return read_document(path).content


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings of the pipeline, none if there is no file; raise DpmcError for one without keys."""
    if not path.exists():
        return {}
    document = read_document(path)
    if not isinstance(document.content, dict):
        document.refuse(rule="must be keys with values, such as study: thesis (config/README.md)")
    return document.content


def read_document(path: Path) -> Document:
    """Read a YAML file with the lines of its keys; raise DpmcError as `read_yaml` does."""
    try:
        return _parse(path.read_bytes(), path)
    except FileNotFoundError:
        raise DpmcError(f"{path}: no such file") from None
    except OSError as error:
        raise DpmcError(f"{path}: cannot be read ({error.strerror})") from None


# Cached by content: a study looks up hyperparameters in the same file for each of its cells.
@functools.lru_cache(maxsize=32)
def _parse(text: bytes, path: Path) -> Document:
    try:
        loader = _StrictLoader(text.decode())
        loader.lines = {}
        return Document(path, loader.get_single_data(), loader.lines)
    except RecursionError:
        raise DpmcError(f"{path}: is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        words = " ".join(str(error).split()).replace('in "<unicode string>", line', "at line")
        raise DpmcError(f"{path}: is not valid YAML: {words}") from None


class _StrictLoader(_Loader):  # type: ignore[misc]
    """YAML with unique text keys and plain numbers; 7e-05 is one, as in YAML 1.2, not a text."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    """Return a mapping; add the lines of its keys to those of the loader."""
    # Merge keys (<<) are replaced by what they stand for.
    loader.flatten_mapping(node)
    result: dict[str, Any] = {}
    loader.lines[id(result)] = lines = {}
    for key_node, value_node in node.value:
        key, line = loader.construct_object(key_node, deep=True), key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise yaml.YAMLError(f"line {line}: key {shown(key)} must be a text")
        if key in result:
            raise yaml.YAMLError(f"line {line}: key {key!r} stands twice")
        result[key], lines[key] = loader.construct_object(value_node, deep=True), line
    return result


def _number(loader: Any, node: yaml.ScalarNode) -> int | float:
    """Return a number in plain digits: YAML's 1:30 is 90, 0x10 is 16, and 1e400 would be no budget."""
    text = str(node.value)
    if text.lstrip("+-").lower() in (".inf", ".nan"):
        return float(text.replace(".", ""))
    try:
        return whole_number(text) if node.tag.endswith(":int") else decimal(text)
    except ValueError as error:
        raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {error}") from None


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
for _tag in ("int", "float"):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
