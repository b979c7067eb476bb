"""The house stands: floors are kept, registries are complete and documented, heavy imports stay where they belong."""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
import tomllib
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT, program

import nbody
import nbody.compute
import nbody.scenario
import nbody.trajectory
from nbody.analysis import PLOTS
from nbody.errors import InputError
from nbody.events import EVENTS
from nbody.exchange import FORMATS
from nbody.fields import FIELDS
from nbody.forces import ENGINES
from nbody.initial import GENERATORS
from nbody.integrators import INTEGRATORS, OF_SYSTEMS
from nbody.linalg import ELEMENTWISE, LADDER
from nbody.registry import Entry

PACKAGE = ROOT / "nbody"

FLOORS = (
    (
        "errors", "number_format", "child", "figures", "lazy", "whole_file", "output_file", "input_file", "memory", "given",
    ),
    ("registry", "machine", "install", "guarded_child", "opengl", "compute", "particles"),
    ("diagnostics", "parallel"),
    ("law",),
    ("scenario",),
    ("state", "linalg", "trajectory"),
    ("exchange", "fields"),
    ("initial", "forces"),
    ("integrators", "events"),
    ("run",),
    ("viewer", "bench", "analysis", "maps", "verify", "doctor", "lessons"),
    ("cli",),
    ("manual",),
)  # fmt: skip
"""From the ground up; a file imports from its own room and from floors below. Rooms of a floor use each other one way."""

ONLY_DOOR = {
    "numba.cuda": {"compute"},
    "h5py": {"trajectory", "exchange"},
    "vispy": {"viewer"},
    "typer": {"cli", "manual"},
}
"""Who may import what is heavy, or likely to be replaced one day."""


SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULES = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in SOURCES}
"""The files of the package, and their names as modules."""


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The syntax tree of a file of the package, from its root."""
    return list(ast.walk(ast.parse(path.read_text())))


def room_of(path: Path) -> str:
    """The top-level module or folder of a file of the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module a file imports anywhere in it, functions included; what only the type checker sees is left out. A package
    from which only modules are taken does not count: ``from nbody import compute`` uses nothing of ``nbody/__init__.py``."""
    found = set()
    hidden = {
        id(inner)
        for node in nodes_of(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes_of(path):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= set(MODULES.values()) else names | {node.module}
    return found


@pytest.fixture(scope="module")
def imported():
    """What each file of the package imports."""
    return {path: imports(path) for path in SOURCES}


def circle(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """What remains of a graph of imports without the names that no circle holds back; empty if there is no circle."""
    below = {name: others & needs.keys() - {name} for name, others in needs.items()}
    while free := [name for name, others in below.items() if not others & below.keys()]:
        for name in free:
            del below[name]
    return below


def test_a_file_imports_only_from_floors_below(imported):
    floor = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
    uses: dict[str, set[str]] = {room: set() for room in floor}
    for path, modules in imported.items():
        room = room_of(path)
        if room in ("__init__", "__main__"):
            continue
        assert room in floor, f"the room '{room}' has no floor; give it one"
        uses[room] |= {module.split(".")[1] for module in modules if module.startswith("nbody.")} & floor.keys()
        above = [module for module in uses[room] if floor[module] > floor[room]]
        assert not above, f"{path.relative_to(ROOT)} imports {above} from above"
    assert not circle(uses), "these rooms of a floor use each other both ways"


VIEWER = (
    ("backends", "sources"),
    ("picture",),
    ("display",),
    ("gl",),
    ("screenshot",),
    ("window", "movie"),
    ("notebook", "web"),
)
"""The folders and files of the viewer, from the ground up; each imports only from those below."""


def test_the_viewer_goes_from_bodies_over_pictures_to_windows(imported):
    floor = {name: level for level, names in enumerate(VIEWER) for name in names}
    for path, modules in imported.items():
        if room_of(path) != "viewer" or path.name == "__init__.py":
            continue
        own = path.relative_to(PACKAGE / "viewer").parts[0].removesuffix(".py")
        used = {module.split(".")[2] for module in modules if module.startswith("nbody.viewer.")} & floor.keys()
        above = [name for name in used - {own} if floor[name] >= floor[own]]
        assert not above, f"{path.relative_to(ROOT)} imports {above} from above"


def test_what_is_heavy_comes_in_by_one_door(imported):
    for path, modules in imported.items():
        for module in modules:
            for heavy, rooms in ONLY_DOOR.items():
                if module == heavy or module.startswith(heavy + "."):
                    assert room_of(path) in rooms, f"{path.relative_to(ROOT)} imports {module}"


def test_a_child_process_imports_nothing_from_the_current_folder():
    """``python -m`` and ``python -c`` would, without ``-P``."""
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                assert ast.unparse(node.elts[1]) == "'-P'", f"{path.relative_to(ROOT)}:{node.lineno}: use nbody.child"


LINES = {
    "analysis": 1513,
    "bench": 3713,
    "cli": 3487,
    "diagnostics": 1252,
    "fields": 1987,
    "compute": 3475,
    "forces": 11312,
    "exchange": 1162,
    "initial": 2785,
    "integrators": 12660,
    "law": 394,
    "lessons": 1590,
    "manual": 161,
    "linalg": 3074,
    "parallel": 841,
    "run": 6985,
    "scenario": 2686,
    "state": 1775,
    "trajectory": 3523,
    "verify": 363,
    "viewer": 6812,
    "child": 36,
    "doctor": 422,
    "errors": 107,
    "figures": 81,
    "given": 86,
    "lazy": 24,
    "machine": 121,
    "maps": 782,
    "opengl": 72,
    "particles": 342,
    "registry": 143,
    "number_format": 42,
    "guarded_child": 151,
    "whole_file": 79,
    "output_file": 107,
    "input_file": 70,
    "memory": 55,
    "install": 43,
}
"""The most lines of Python, GLSL and C in a room that keeps the rules below; a change of this number is a decision."""

MOST_NAMES = 20
"""Of an interface and its implementations, with the names that they inherit."""

MOST_NAMES_OF_AN_ENGINE, MOST_NAMES_OF_A_SCHEME = 12, 12

MOST_PARAMETERS, MOST_OF_A_KERNEL = 8, 12
"""Of a function, and of one that Numba compiles, which can't take a structure."""

MOST_LINES_OF_A_KERNEL = 120
"""Of a function that Numba compiles."""

MANY = {
    "accelerations", "plot",  # of the package, whose arguments have names
}  # fmt: skip
"""Functions with more."""

SEVERAL = {"Options"}
"""Nested in components."""


def test_a_room_keeps_to_its_budget_of_lines():
    lines = dict.fromkeys(LINES, 0)
    for path in PACKAGE.rglob("*"):
        if path.suffix in (".py", ".glsl", ".c") and room_of(path) in lines:
            lines[room_of(path)] += len(path.read_text().splitlines())
    assert not {room: count for room, count in lines.items() if count > LINES[room]}


def test_files_of_a_room_import_each_other_in_no_circle(imported):
    for room in LINES:
        assert not circle({MODULES[path]: imported[path] for path in SOURCES if room_of(path) == room})


@pytest.fixture(scope="module")
def definitions():
    """The classes and the functions of the package, with their files."""
    nodes = [(path, node) for path in SOURCES for node in nodes_of(path)]
    return [[(path, node) for path, node in nodes if isinstance(node, kind)] for kind in (ast.ClassDef, ast.FunctionDef)]


def test_a_class_name_means_one_thing(definitions):
    places: dict[str, list[Path]] = {}
    for path, node in definitions[0]:
        places.setdefault(node.name, []).append(path.relative_to(ROOT))
    assert not {name: paths for name, paths in places.items() if len(paths) > 1 and name not in SEVERAL}


def test_no_function_has_very_many_parameters(definitions):
    for path, node in definitions[1]:
        names = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        most = MOST_PARAMETERS if has_types(node) else MOST_OF_A_KERNEL
        assert node.name in MANY or len(names - {"self", "cls"}) <= most, (path, node.name)


def has_types(node: ast.FunctionDef) -> bool:
    """False for functions that Numba compiles."""
    return any(each.annotation for each in (*node.args.args, *node.args.kwonlyargs))


def test_no_compiled_function_has_very_many_lines(definitions):
    for path, node in definitions[1]:
        if node.args.args and not has_types(node):
            assert node.end_lineno - node.lineno < MOST_LINES_OF_A_KERNEL, (path, node.name)


def public_names(kind: type) -> set[str]:
    """The public names of a class and of its instances, inherited ones too."""
    names = {*dir(kind), *(name for each in kind.__mro__ for name in getattr(each, "__annotations__", ()))}
    for each in kind.__mro__:
        if not each.__module__.startswith("nbody."):
            continue
        code = ast.parse(textwrap.dedent(inspect.getsource(each)))
        for node in ast.walk(code):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
                names.add(node.attr)
    return {name for name in names if not name.startswith("_")}


def test_a_source_of_pictures_has_few_names_and_no_flags():
    """And the clocks that choose the moment to show."""
    from nbody.viewer.sources.live import Live
    from nbody.viewer.sources.recording import RecordedSource
    from nbody.viewer.window.clock import Playback
    from nbody.viewer.window.live_clock import LiveClock

    for kind in (RecordedSource, Live):
        public = public_names(kind)
        assert {"catalogue", "length_unit", "shown", "moment", "run"} <= public and len(public) <= MOST_NAMES, public
        assert not [name for name in public if isinstance(getattr(kind, name, None), bool)]
    for clock in (Playback, LiveClock):
        assert len(public_names(clock)) <= MOST_NAMES, public_names(clock)


def test_states_and_engines_have_few_names_and_no_flags():
    """Layers around engines too. The columns of a state are among its names, but not those that engines and schemes add."""
    program("few_names", env={"NUMBA_ENABLE_CUDASIM": "1"}, check=True)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_scheme_has_few_names_and_no_flags(name):
    for each in [INTEGRATORS.load(name), *([OF_SYSTEMS.load(name)] if name in OF_SYSTEMS else [])]:
        public = public_names(each)
        assert {"facts", "supports", "advance", "report"} <= public and len(public) <= MOST_NAMES_OF_A_SCHEME, public
        assert not [name for name in public if isinstance(getattr(each, name, None), bool)]


def test_help_imports_nothing_heavy():
    """numba.cuda costs 0.6 s, numba 0.4, vispy and h5py 0.2 each: a user who asks for help waits for none of them."""
    assert program("questions", "after_help", check=True).stdout.endswith("[]\n")


@pytest.mark.parametrize(
    "package", [nbody, nbody.compute, nbody.scenario, nbody.trajectory], ids=lambda package: package.__name__
)
def test_every_name_that_a_package_imports_at_first_use_is_there(package):
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("package", [nbody, nbody.scenario, nbody.trajectory], ids=lambda package: package.__name__)
def test_a_type_checker_sees_the_names_of_the_package(package):
    assert set(re.findall(r"import (\w+) as \1$", Path(package.__file__).read_text(), re.MULTILINE)) == set(package.__all__)


DOCUMENTS = (
    (GENERATORS, "nbody/initial/README.md"),
    (INTEGRATORS, "nbody/integrators/README.md"),
    (FORMATS, "nbody/exchange/README.md"),
    (FIELDS, ""),
    (EVENTS, ""),
    (PLOTS, ""),
    (ENGINES, "nbody/forces/README.md"),
    (LADDER, "nbody/linalg/README.md"),
    (ELEMENTWISE, "nbody/linalg/README.md"),
)
"""Where everything of a registry is told by name, beside the manual (tests/test_manual.py)."""


@pytest.mark.parametrize("registry,page", DOCUMENTS, ids=lambda value: getattr(value, "kind", value))
def test_everything_registered_loads_and_is_documented(registry, page):
    text = "".join(each.read_text() for each in (ROOT / page).parent.rglob("README.md")) if page else ""
    for name in registry:
        thing, module = registry.load(name), sys.modules[registry[name].target.split(":")[0]]
        assert registry[name].summary and module.__doc__ and (not isinstance(thing, type) or thing.__doc__), name
        assert not page or f"`{name}`" in text, f"{page}: no {registry.kind} '{name}'"


@pytest.mark.parametrize("name", [name for name in ENGINES if not ENGINES[name].variants])
def test_the_tags_of_an_engine_are_what_its_class_does(name):
    can = ENGINES.load(name).can
    assert set(ENGINES[name].tags) == {*["gpu"] * (can.device == "gpu"), *["tree"] * (can.tree)}


@pytest.mark.parametrize("room,registry", [("linalg", LADDER), ("forces", ENGINES)], ids=["linalg", "forces"])
def test_a_lesson_has_a_section_for_everything_of_its_registry(room, registry):
    pages = sorted((PACKAGE / room).rglob("README.md"))
    headings = [line for page in pages for line in page.read_text().splitlines() if line.startswith("## ")]
    for name in registry:
        assert any(f"`{name}`" in heading for heading in headings), f"nbody/{room}/README.md has no section on '{name}'"


def test_the_version_to_cite_is_that_of_the_package():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {package}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_gallery_shows_every_scenario():
    gallery = (ROOT / "scenarios" / "README.md").read_text()
    for path in (ROOT / "scenarios").glob("*.yaml"):
        assert f"## {path.stem}" in gallery and f"nbody run {path.stem}" in gallery


def test_the_readme_is_a_front_page_with_the_rooms_of_the_house():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    start = lines.index("| room | what is in it |") + 2
    cells = [line.split("|")[1] for line in lines[start : start + len(FLOORS)]]
    told = [set(re.findall(r"`([a-z_]+)(?:/|\.py)`", cell)) for cell in cells]
    exists = [{room for room in floor if list(PACKAGE.glob(f"{room}*"))} for floor in reversed(FLOORS)]
    assert told == exists, "the README's rooms are not those of FLOORS, from the top down"


def test_every_picture_and_page_that_a_document_links_is_there():
    for page in (ROOT / "README.md", ROOT / "scenarios" / "README.md", *PACKAGE.glob("*/README.md")):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links {target}"


def test_an_experimental_engine_is_marked_wherever_a_user_may_choose_it(monkeypatch):
    monkeypatch.setitem(ENGINES._entries, "gpu-split", Entry("", "", experimental=True))
    assert "gpu-split (experimental)" in ENGINES.listing()
    with pytest.raises(InputError, match=r"gpu-split \(experimental\)"):
        ENGINES.check("no such engine")


def commands():
    """Every command of the program, by name; those of groups too (``bench matmul``)."""
    from typer.main import get_command

    from nbody.cli import program

    found = dict(get_command(program()).commands)
    for name, command in list(found.items()):
        found |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    return found


def test_every_command_has_help_with_an_example_and_a_line_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    for name, command in commands().items():
        assert command.help, name
        assert f"nbody {name} " in command.help or f"nbody {name}\n" in command.help + "\n", f"'{name}' has no example"
        assert max(map(len, command.help.splitlines()[2:])) < 93, f"{name}: a line of the help is too long to be read"
        assert f"nbody {name.split()[0]}" in readme, f"the README does not name 'nbody {name}'"
        for option in command.params:
            help = getattr(option, "help", "argument")
            assert help, f"{name}: {option.name} has no help"
            assert not re.search(r"\[[a-z/@#]", help), f"{name}: Rich takes [words] out of the help of {option.name}"


def test_every_public_definition_has_a_docstring():
    for path in SOURCES:
        tree = nodes_of(path)[0]
        assert ast.get_docstring(tree) or not tree.body, f"{path.name} has no docstring"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has no docstring"


def test_an_override_inherits_its_documentation_instead_of_pointing_to_it():
    for path in SOURCES:
        assert '"""See :' not in path.read_text(), path.relative_to(ROOT)


def test_the_top_level_holds_what_the_design_says():
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listed.split()}
    assert {name for name in top if not name.startswith(".")} <= {
        "pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "nbody", "scenarios", "tests", "output",
    }  # fmt: skip
