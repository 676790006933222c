"""Writes the reference of all scenario fields from the form itself: `python -m rollart.scenario.reference`."""

from collections.abc import Iterator
from typing import Any

from rollart.scenario.problems import form_schema
from rollart.scenario.requirement import Node, entries, requirement, resolve
from rollart.scenario.sections.document import ScenarioFile

MOST_SHOWN = 3
"""Keys of a section whose default is shown whole; a longer one has the defaults of its keys."""

INTRODUCTION = """\
# Scenario files

A scenario is one YAML file that says everything a run needs: hardware, model, tasks, training, and the plan. The same
file drives every verb. `experiments/scenarios/` holds examples, with the origin of each figure in a comment.

    rollart simulate experiments/scenarios/laptop.yaml
    rollart simulate experiments/scenarios/paper-128.yaml --set cluster.pools.h800.count=64 --set policy=areal

- Units belong to the keys (`_gb` is 10^9 bytes, `_gbit_per_s` is 10^9 bits per second), so values are plain numbers.
  Nothing is converted: text where a number belongs is an error, and so is a key that the form does not have.
- Files that a scenario names are looked up in the scenario's folder, then in the folder that holds the package.
- YAML is read as data: version 1.2 scalars (`1e9` is a number, `on` is text), no tags, no merge keys, no key twice.
  Files over 10 MB, nesting over 40 levels and aliases that expand to over 200,000 values are refused.
- `--set KEY=VALUE` changes one value before the check. KEY is a dotted path; an entry of a list goes by its `name`
  or its number (`tasks.SWE-bench.share=0.5`). VALUE is read as YAML.
- A plan file holds `placement` and `policy` in the form below, and an optional `schema_version`. `--plan FILE` puts
  them in the place of the scenario's.
- An error is one line for each problem, at most five of them: file, key, value, and what would be right.

What is checked across keys: names differ; shares are given for all tasks or none, and add up to 1; the batch is cut
into whole groups, at least one for each task (largest remainder over the shares; with different group sizes each
task's part must be whole groups); pools, groups, tasks, files, models, devices and policies that are named exist;
devices suffice (a time-shared group lives on the trainer's devices); tensor parallelism fits a node and divides the
attention heads; trainer and engines fit their memory, by the cost models; prefill and decode engines come in pairs.

## Without a placement

A scenario that leaves `placement` out gets a simple split. It is a rule, not an optimum:

"""

AFTER_FIELDS = """
## Policies

`policy: NAME` takes a preset as it is. A mapping takes `preset` and changes single parts; a part has a `kind` and
parameters of that kind, and keeps the preset's where it names neither:

    policy:
      preset: rollart
      staleness: {bound: 2}

## Devices and models of your own

`devices` and `models` add entries to the packaged catalogues, or replace theirs. A model is the set of fields of its
Hugging Face `config.json`; a device is written like this, or starts from another with `like`:

    devices:
      H800 at half price: {like: H800, price_per_hour: 1.4}
    models:
      my-model: {model_type: qwen3, hidden_size: 2048, num_hidden_layers: 28, num_attention_heads: 16,
                 num_key_value_heads: 8, head_dim: 128, intermediate_size: 6144, vocab_size: 151936}

## Preemption traces

`faults.preemption_trace` names a CSV file with the header `time_s,engine,away_s`: at `time_s` of the run the engine
with this number (engines are numbered through the groups in their order) loses its devices for `away_s` seconds.
"""


def reference() -> str:
    """The page, as Markdown."""
    from rollart.scenario import split

    rule = (split.__doc__ or "").split("\n\n", 1)[1].rstrip()
    lines = ["\n## Fields\n", "| key | value | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{row[0]}` | {row[1]} | {row[2]} | {row[3]} |" for row in field_rows()]
    return INTRODUCTION + rule + "\n" + "\n".join(lines) + "\n" + AFTER_FIELDS


def field_rows() -> Iterator[tuple[str, str, str, str]]:
    """Key, what it holds, default, and meaning of every field, in the order of the form."""
    schema = form_schema(ScenarioFile)
    yield from _rows(schema, schema, "")


def _rows(schema: Node, node: Node, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    required = node.get("required", [])
    for key, field in node["properties"].items():
        inner = resolve(schema, field)
        path = f"{prefix}{key}"
        yield path, requirement(inner, key), _default(field, key in required), field.get("description", "")
        if "properties" in inner:
            yield from _rows(schema, inner, f"{path}.")
        elif inner.get("type") == "array" and "$ref" in inner["items"]:
            yield from _rows(schema, resolve(schema, inner["items"]), f"{path}[].")
        elif isinstance(entries(inner), dict) and "$ref" in entries(inner):
            yield from _rows(schema, resolve(schema, entries(inner)), f"{path}.NAME.")


def _default(field: Node, is_required: bool) -> str:
    if is_required:
        return "required"
    value: Any = field.get("default")
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, dict):
        shown = ", ".join(f"{key}: {part}" for key, part in value.items())
        return f"`{{{shown}}}`" if len(value) <= MOST_SHOWN else "as below"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    print(reference(), end="")
