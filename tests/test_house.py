"""The house stands: floors are kept, registries are complete and documented, heavy imports stay where they belong."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nbody
import nbody.gpu
import nbody.scenario
import nbody.trajectory
from nbody.analysis import PLOTS
from nbody.errors import InputError
from nbody.exchange import FORMATS
from nbody.fields import FIELDS
from nbody.forces import ENGINES
from nbody.initial import GENERATORS
from nbody.integrators import INTEGRATORS
from nbody.linalg import ELEMENTWISE, LADDER
from nbody.registry import Entry

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "nbody"

FLOORS = (
    ("errors", "units", "child", "cache", "figures", "lazy", "whole_file"),
    ("registry", "machine", "opengl", "gpu", "particles"),
    ("unroll", "diagnostics", "parallel"),
    ("law",),
    ("scenario",),
    ("state", "linalg", "trajectory"),
    ("exchange", "fields"),
    ("initial", "forces"),
    ("integrators",),
    ("run",),
    ("viewer", "bench", "analysis", "verify", "doctor", "lessons"),
    ("cli",),
)
"""From the ground up; a file imports only from floors below its own, or from its own room."""

ONLY_DOOR = {"numba.cuda": {"gpu"}, "h5py": {"trajectory", "exchange"}, "vispy": {"viewer"}, "typer": {"cli"}}
"""Who may import what is heavy, or likely to be replaced one day."""


def room_of(path: Path) -> str:
    """The top-level module or folder of a file of the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module a file imports anywhere in it, functions included; what only the type checker sees is left out."""
    tree = ast.parse(path.read_text())
    found = set()
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.fixture(scope="module")
def imported():
    """What each file of the package imports."""
    return {path: imports(path) for path in SOURCES}


def test_a_file_imports_only_from_floors_below(imported):
    floor = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
    for path, modules in imported.items():
        room = room_of(path)
        if room in ("__init__", "__main__"):
            continue
        assert room in floor, f"the room '{room}' has no floor; give it one"
        for module in modules:
            other = module.split(".")[1] if module.startswith("nbody.") else room
            if other in floor and other != room:
                assert floor[other] < floor[room], f"{path.relative_to(ROOT)} imports {module} from above"


def test_what_is_heavy_comes_in_by_one_door(imported):
    for path, modules in imported.items():
        for module in modules:
            for heavy, rooms in ONLY_DOOR.items():
                if module == heavy or module.startswith(heavy + "."):
                    assert room_of(path) in rooms, f"{path.relative_to(ROOT)} imports {module}"


def test_a_child_process_imports_nothing_from_the_current_folder():
    """``python -m`` and ``python -c`` would, without ``-P``."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                assert ast.unparse(node.elts[1]) == "'-P'", f"{path.relative_to(ROOT)}:{node.lineno}: use nbody.child"


LINES = {"viewer": 6730}
"""The most lines of Python and GLSL in a room; a change of this number is a decision."""

MOST_NAMES, MOST_PARAMETERS = 20, 8
"""Of an interface and its implementations, with the names that they inherit; and of a function."""

ELSEWHERE = {"Source"}
"""Class names of these rooms that other rooms still have too."""


@pytest.mark.parametrize("room", LINES)
def test_a_room_keeps_to_its_budget_of_lines(room):
    files = [path for path in (PACKAGE / room).rglob("*") if path.suffix in (".py", ".glsl")]
    assert sum(len(path.read_text().splitlines()) for path in files) <= LINES[room]


@pytest.mark.parametrize("room", LINES)
def test_files_of_a_room_import_each_other_in_no_circle(room, imported):
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES
    }
    below = {name: imported[path] & modules.keys() - {name} for name, path in modules.items() if room_of(path) == room}
    while free := [name for name, needs in below.items() if not needs & below.keys()]:
        for name in free:
            del below[name]
    assert not below, "these import each other in a circle, or import one that does"


@pytest.mark.parametrize("room", LINES)
def test_a_class_name_means_one_thing_and_no_function_has_very_many_parameters(room):
    trees = {path: list(ast.walk(ast.parse(path.read_text()))) for path in SOURCES}
    classes = [(node.name, path) for path, nodes in trees.items() for node in nodes if isinstance(node, ast.ClassDef)]
    for name, path in classes:
        places = {other for each, other in classes if each == name}
        assert room_of(path) != room or name in ELSEWHERE or len(places) == 1, (name, places)
    for path, nodes in trees.items():
        for node in nodes if room_of(path) == room else []:
            if isinstance(node, ast.FunctionDef):
                names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                assert len(set(names) - {"self", "cls"}) <= MOST_PARAMETERS, (path, node.name)


def test_a_source_of_pictures_has_few_names_and_no_flags():
    from nbody.viewer.sources.live import Live
    from nbody.viewer.sources.recording import RecordedSource

    for kind in (RecordedSource, Live):
        names = {*dir(kind), *(name for each in kind.__mro__ for name in getattr(each, "__annotations__", ()))}
        for each in kind.__mro__[:-2]:
            names |= set(re.findall(r"self\.(\w+)(?:, self\.\w+)* = ", inspect.getsource(each.__init__)))
            names |= set(re.findall(r", self\.(\w+)", inspect.getsource(each.__init__)))
        public = {name for name in names if not name.startswith("_")}
        assert {"catalogue", "length_unit", "shown", "moment", "run"} <= public and len(public) <= MOST_NAMES, public
        assert not [name for name in public if isinstance(getattr(kind, name, None), bool)]


def test_help_imports_nothing_heavy():
    """numba.cuda costs 0.6 s, numba 0.4, vispy and h5py 0.2 each: a user who asks for help waits for none of them."""
    code = "import sys; from nbody.cli import main; main(['--help']); print([m for m in %r if m in sys.modules])"
    heavy = ["numba", "numba.cuda", "h5py", "vispy", "matplotlib", "pydantic"]
    run = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("[]")


@pytest.mark.parametrize(
    "package", [nbody, nbody.gpu, nbody.scenario, nbody.trajectory], ids=lambda package: package.__name__
)
def test_every_name_that_a_package_imports_at_first_use_is_there(package):
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("package", [nbody, nbody.scenario, nbody.trajectory], ids=lambda package: package.__name__)
def test_a_type_checker_sees_the_names_of_the_package(package):
    assert set(re.findall(r"import (\w+) as \1$", Path(package.__file__).read_text(), re.MULTILINE)) == set(
        package.__all__
    )


DOCUMENTS = (
    (GENERATORS, "nbody/initial/README.md"),
    (INTEGRATORS, "README.md"),
    (FORMATS, "nbody/exchange/README.md"),
    (FIELDS, "README.md"),
    (PLOTS, "README.md"),
    (ENGINES, "nbody/forces/README.md"),
    (LADDER, "nbody/linalg/README.md"),
    (ELEMENTWISE, "nbody/linalg/README.md"),
)
"""Where everything of a registry is told by name."""
REGISTERED = [(registry, name, page) for registry, page in DOCUMENTS for name in registry]


@pytest.mark.parametrize("registry,name,page", REGISTERED, ids=lambda value: getattr(value, "kind", value))
def test_everything_registered_loads_and_is_documented(registry, name, page):
    thing = registry.load(name)
    module = sys.modules[registry[name].target.split(":")[0]]
    assert registry[name].summary
    assert module.__doc__
    if isinstance(thing, type):
        assert thing.__doc__
    assert f"`{name}`" in (ROOT / page).read_text(), f"{page} does not name {registry.kind} '{name}'"


@pytest.mark.parametrize("room,registry", [("linalg", LADDER), ("forces", ENGINES)], ids=["linalg", "forces"])
def test_a_lesson_has_a_section_for_everything_of_its_registry(room, registry):
    headings = [line for line in (PACKAGE / room / "README.md").read_text().splitlines() if line.startswith("## ")]
    for name in registry:
        assert any(f"`{name}`" in heading for heading in headings), f"nbody/{room}/README.md has no section on '{name}'"


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

    from nbody.cli import app

    found = dict(get_command(app).commands)
    for name, command in list(found.items()):
        found |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    return found


def test_every_command_has_help_with_an_example_and_a_line_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    for name, command in commands().items():
        assert command.help, name
        assert f"nbody {name} " in command.help or f"nbody {name}\n" in command.help + "\n", f"'{name}' has no example"
        assert f"nbody {name}" in readme, f"the README does not name 'nbody {name}'"
        for option in command.params:
            assert getattr(option, "help", "argument"), f"{name}: {option.name} has no help"


def test_every_public_definition_has_a_docstring():
    for path in SOURCES:
        tree = ast.parse(path.read_text())
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
        "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "nbody", "scenarios", "tests", "output",
    }  # fmt: skip
