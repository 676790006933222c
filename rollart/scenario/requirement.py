"""Says in words what a key of the scenario form must hold, from the form's JSON schema.

One source for the messages about wrong values and for the reference of all fields.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from rollart.scenario.sections.base import PATTERN_WORDS

Node = dict[str, Any]

TECHNICAL = 65536
"""Upper bounds from here on only keep arithmetic finite; they are told to those who pass them."""

UNITS = {
    "_gbit_per_s": "in Gbit/s",
    "_per_second": "per second",
    "_per_core_hour": "per core and hour",
    "_per_hour": "per device and hour",
    "_per_s": "per second",
    "_gb": "in GB of 10^9 bytes",
    "_us": "in microseconds",
    "_s": "in seconds",
    "_tokens": "in tokens",
    "context_limit": "in tokens",
}
"""Unit, with its preposition, by the end of a key; the first that fits."""


def unit_of(key: str) -> str | None:
    """Unit of a key's number, or None where it is a plain number."""
    return next((unit for ending, unit in UNITS.items() if key.endswith(ending)), None)


def resolve(schema: Node, node: Node) -> Node:
    """Follow references, and take the member of an optional value that is not null."""
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif "anyOf" in node:
            members = [member for member in node["anyOf"] if member.get("type") != "null"]
            if len(members) != 1:
                return node
            node = members[0]
        else:
            return node


def node_at(schema: Node, location: Sequence[str | int]) -> Node | None:
    """Schema node of a location, None where the schema has no such place."""
    node = resolve(schema, schema)
    for part in location:
        if isinstance(part, int):
            child = node.get("items")
        else:
            child = node.get("properties", {}).get(part, entries(node))
        if not isinstance(child, dict):
            return None
        node = resolve(schema, child)
    return node


def entries(node: Node) -> Any:
    """Schema node of the values of a mapping with free keys, None or a flag for other nodes."""
    by_pattern = list(node.get("patternProperties", {}).values())
    return by_pattern[0] if by_pattern else node.get("additionalProperties")


def requirement(node: Node, key: str) -> str:
    """What a value must be, for instance "a whole number >= 1" or "a number > 0 in seconds"."""
    if "const" in node:
        return str(node["const"])
    if "enum" in node:
        return "one of " + ", ".join(node["enum"])
    if "anyOf" in node:
        return " or ".join(requirement(member, key) for member in node["anyOf"])
    kind = node.get("type")
    if kind in ("integer", "number"):
        return _number(node, key)
    if kind == "string":
        return PATTERN_WORDS.get(node.get("pattern", ""), "text")
    if kind == "array":
        return _list(node, key)
    return {"boolean": "true or false", "object": "a mapping"}.get(str(kind), "a value")


def _number(node: Node, key: str) -> str:
    bounds = " and ".join(_bounds(node))
    words = "a whole number" if node["type"] == "integer" else "a number"
    unit = unit_of(key)
    return f"{words} {bounds}".rstrip() + (f" {unit}" if unit else "")


def _bounds(node: Node) -> Iterator[str]:
    if "exclusiveMinimum" in node:
        yield f"> {node['exclusiveMinimum']}"
    if "minimum" in node:
        yield f">= {node['minimum']}"
    if node.get("maximum", TECHNICAL) < TECHNICAL:
        yield f"<= {node['maximum']}"


def _list(node: Node, key: str) -> str:
    entry = node.get("items", {})
    words = requirement(entry, key) if entry.get("type") == "string" else "a mapping"
    fixed = node.get("minItems") == node.get("maxItems") and node.get("minItems")
    return f"a list of {fixed} entries, each {words}" if fixed else f"a list, each entry {words}"
