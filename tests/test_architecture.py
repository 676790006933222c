"""The shape of the package: who may import whom, what stays out, and that every module says what it is."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
MODULES = {
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((CHECKOUT / "rollart").rglob("*.py"))
}

BELOW_SCHED = {"domain", "costs", "workload", "runlog", "serving"}
BELOW_DRIVERS = BELOW_SCHED | {"sched"}
ALLOWED = {
    "domain": set(),
    "costs": {"domain"},
    "workload": {"domain", "runlog"},
    "runlog": {"domain"},
    "catalog": {"domain"},
    "serving": {"domain", "costs"},
    "loadtest": BELOW_SCHED | {"report"},
    "sched": BELOW_SCHED,
    "modelled": BELOW_SCHED,
    "sim": BELOW_DRIVERS | {"modelled"},
    "exec": BELOW_DRIVERS | {"modelled"},
    "report": {"domain", "runlog", "workload"},
    "scenario": {"domain", "catalog", "costs", "workload", "runlog", "sched"},
    "benchmark": BELOW_DRIVERS | {"sim", "catalog"},
    "running": BELOW_DRIVERS | {"exec", "sim", "report", "scenario"},
    "planning": BELOW_DRIVERS | {"sim", "report", "scenario"},
    "api": BELOW_DRIVERS | {"sim", "exec", "catalog", "report", "scenario", "benchmark", "planning", "running"},
    "cli": BELOW_DRIVERS | {"sim", "exec", "catalog", "report", "scenario", "api", "loadtest", "running"},
}
"""Package -> the other packages that it may import. The facade `rollart` itself belongs to nobody's layer."""

HEAVY = ("torch", "ray", "vllm", "transformers", "matplotlib")


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imports_of(name: str, *, types: bool = True) -> Iterator[str]:
    """Every module or name that a module imports, in functions too; without `types`, at run time only."""

    def visit(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            if types or not is_for_types_only(child):
                yield from visit(child)

    return visit(tree_of(name))


def package_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def own(name: str) -> str | None:
    """The module of this package that an imported name comes from."""
    while name:
        if name in MODULES:
            return name
        name = name.rpartition(".")[0]
    return None


def test_every_package_has_its_layer():
    assert {package_of(name) for name in MODULES} - {""} <= set(ALLOWED)


@pytest.mark.parametrize("name", MODULES)
def test_no_arrow_runs_against_the_layers(name):
    package = package_of(name)
    if not package:
        return
    wrong = {
        target
        for target in map(own, imports_of(name))
        if target is not None and package_of(target) not in ALLOWED[package] | {package, ""}
    }
    assert wrong == set()


def test_the_layers_have_no_cycle():
    assert len(list(TopologicalSorter(ALLOWED).static_order())) == len(ALLOWED)


def test_the_two_drivers_do_not_know_each_other():
    assert "exec" not in ALLOWED["sim"]
    assert "sim" not in ALLOWED["exec"]


def test_scenarios_ask_the_control_plane_for_its_policies_only():
    found = {own(target) for name in MODULES if package_of(name) == "scenario" for target in imports_of(name)}
    assert {target for target in found if target and package_of(target) == "sched"} <= {
        "rollart.sched.presets",
        "rollart.sched.parts",
    }


def test_no_module_imports_itself_on_a_way_round():
    graph = {
        name: {target for target in map(own, imports_of(name, types=False)) if target not in (None, name)}
        for name in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_nothing_imports_experiments_or_tests():
    for name in MODULES:
        roots = {target.split(".")[0] for target in imports_of(name)}
        assert not roots & {"experiments", "tests"}, name


@pytest.mark.parametrize("package", ["domain", "costs", "workload", "runlog", "serving", "sched", "sim", "scenario"])
def test_nothing_below_the_executor_names_a_heavy_package(package):
    for name in MODULES:
        if package_of(name) == package:
            assert not {target.split(".")[0] for target in imports_of(name)} & set(HEAVY), name


def test_nothing_below_the_simulator_knows_simpy():
    knows = {name for name in MODULES if any(target.split(".")[0] == "simpy" for target in imports_of(name))}
    # The benchmark measures it bare, and the doctor looks whether it is there.
    assert {package_of(name) for name in knows} <= {"sim", "benchmark", "cli"}


def test_the_control_plane_reads_no_clock_and_draws_no_luck():
    for name in MODULES:
        if package_of(name) in ("domain", "serving", "sched"):
            assert not {target.split(".")[0] for target in imports_of(name)} & {"time", "random", "datetime"}, name


def test_nothing_unpickles():
    for name in MODULES:
        assert not {target.split(".")[0] for target in imports_of(name)} & {"pickle", "marshal", "shelve"}, name


def test_every_module_says_what_it_is():
    without = [name for name in MODULES if not ast.get_docstring(tree_of(name))]
    assert without == []


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    return set(done.stdout.split())


def test_the_simulator_loads_nothing_heavy():
    loaded = loaded_after("import rollart.sim, rollart.sched, rollart.costs, rollart.scenario.load")
    assert "simpy" in loaded
    assert not loaded & set(HEAVY)


def test_importing_the_package_is_light():
    loaded = loaded_after("import rollart")
    assert not loaded & {"numpy", "pydantic", "simpy", "pyarrow", "yaml", *HEAVY}
