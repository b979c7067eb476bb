"""The house stands: floors are kept, registries are complete and documented, heavy imports stay where they belong."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nbody.analysis import PLOTS
from nbody.errors import InputError
from nbody.exchange import FORMATS
from nbody.fields import FIELDS
from nbody.forces import ENGINES
from nbody.initial import GENERATORS
from nbody.integrators import INTEGRATORS
from nbody.linalg import ELEMENTWISE, LADDER

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "nbody"

FLOORS = (
    ("errors", "units", "opengl", "cache", "figures", "whole_file"),
    ("registry", "machine", "gpu", "particles"),
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


def test_help_imports_nothing_heavy():
    """numba.cuda costs 0.6 s, numba 0.4, vispy and h5py 0.2 each: a user who asks for help waits for none of them."""
    code = "import sys; from nbody.cli import main; main(['--help']); print([m for m in %r if m in sys.modules])"
    heavy = ["numba", "numba.cuda", "h5py", "vispy", "matplotlib", "pydantic"]
    run = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("[]")


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


@pytest.mark.parametrize("name", [name for name in ENGINES if ENGINES[name].experimental])
def test_an_experimental_engine_is_marked_wherever_a_user_may_choose_it(name):
    readme = (ROOT / "README.md").read_text()
    assert all(f"| `{name}` (experimental) |" in line for line in readme.splitlines() if line.startswith(f"| `{name}`"))
    (option,) = (option for option in commands()["run"].params if option.name == "engine")
    assert f"{name} (experimental)" in option.help
    with pytest.raises(InputError, match=f"{name} \\(experimental\\)"):
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


def test_the_top_level_holds_what_the_design_says():
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listed.split()}
    assert {name for name in top if not name.startswith(".")} <= {
        "pyproject.toml", "README.md", "LICENSE", "nbody", "scenarios", "tests", "output",
    }  # fmt: skip
