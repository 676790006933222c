"""Reads YAML files that somebody else may have written: bounded in size, depth and aliases, and never executed.

Numbers and booleans follow YAML 1.2 (1e9 is a number, `on` is text, 010 is ten), repeated keys and merge keys are
refused. Only mappings, lists, text, finite or infinite numbers, booleans and null can come out.
"""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from rollart.domain.errors import ScenarioError

MAX_FILE_BYTES = 10_000_000
MAX_NODES = 200_000
"""Nodes of a document with its aliases expanded; a scenario has a few hundred."""
MAX_DEPTH = 40
"""Nesting; a scenario needs 6, and an inline model configuration a few more."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """A safe loader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own protocol

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: ARG002
        """A mapping whose keys are text and differ."""
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise _marked("a key must be text", key_node)
            if key in mapping:
                raise _marked(f"key {key!r} is given twice", key_node)
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        """A whole number; 010 is ten."""
        if len(node.value) > 400:
            raise _marked(f"a number of {len(node.value)} digits is too long", node)
        return int(node.value)

    def construct_real(self, node: yaml.ScalarNode) -> float:
        """A number with a point or an exponent."""
        text: str = node.value.lower()
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"
        r"|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$"
    ),
    list("-+.0123456789"),
)
PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map"))
"""Anything else would ask for a type, and a file holds data only."""
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_decimal)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_real)


def read_mapping(path: Path, shown: str | None = None) -> dict[str, Any]:
    """Read a YAML file that must hold a mapping; ScenarioError (one line that starts with the file) if not."""
    shown = shown or path.name
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{shown}: cannot be read: {error.strerror or error} ({path})") from error
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(f"{shown}: is longer than {MAX_FILE_BYTES / 1e6:.0f} MB; a scenario is a short YAML file")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown}: byte {error.start} is not UTF-8 text; a scenario is a YAML text file") from error
    value = parse(text, shown)
    if value is None:
        raise ScenarioError(f"{shown}: is empty; a scenario is a YAML mapping with name, model, cluster, tasks ...")
    if not isinstance(value, dict):
        raise ScenarioError(f"{shown}: holds a {kind_of(value)}; a scenario is a YAML mapping with name, model ...")
    return value


def parse(text: str, place: str) -> Any:
    """Value of one YAML document; ScenarioError that begins with `place`."""
    try:
        _check_nesting(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_nodes(node, {}, set())
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ScenarioError(f"{place}: {where}{_reason(error)}") from error
    except KeyError as error:
        raise ScenarioError(f"{place}: {error} is tagged as true or false, and is neither") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ScenarioError(f"{place}: is not YAML: {' '.join(str(error).split())[:120]}") from error


def kind_of(value: object) -> str:
    """What a value is, in the words of a YAML file."""
    if value is None:
        return "null"
    names = {bool: "true or false", int: "number", float: "number", str: "text", list: "list", dict: "mapping"}
    return names.get(type(value), type(value).__name__)


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "is not YAML"
    if error.context and error.context != problem:
        return f"{problem} ({error.context})"
    return problem


def _marked(problem: str, node: yaml.Node | yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)  # type: ignore[arg-type]


def _check_nesting(text: str) -> None:
    """Refuse what would exhaust the stack or the time of the composer; the event stream needs neither."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _marked(f"is nested deeper than {MAX_DEPTH} levels", event)
        if count > 2 * MAX_NODES:
            raise _marked(f"has more than {MAX_NODES} values", event)


def _check_nodes(node: yaml.Node, known: dict[int, int], above: set[int]) -> int:
    """Number of nodes in `node` after expansion of its aliases; refuses bombs, cycles and typed tags."""
    if id(node) in known:
        return known[id(node)]
    if id(node) in above:
        raise _marked("an alias contains itself", node)
    if node.tag not in PLAIN_TAGS:
        raise _marked(f"tag {node.tag!r} is not allowed; only plain values are", node)
    above.add(id(node))
    children: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        children = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        children = node.value
    count = 1 + sum(_check_nodes(child, known, above) for child in children)
    if count > MAX_NODES:
        raise _marked(f"aliases expand to more than {MAX_NODES} values", node)
    above.discard(id(node))
    known[id(node)] = count
    return count
