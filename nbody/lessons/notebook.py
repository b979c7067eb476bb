"""A course as a notebook, from its page: text and figures of each section, and cells that show and run what it is about.

Cells say what they are on a slide; :func:`slides` makes a page of these that needs no network, and so could ``jupyter
nbconvert --to slides``.
"""

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from nbody import machine
from nbody.errors import unknown

PACKAGE = Path(__file__).resolve().parents[1]

COURSES = {"matrix": "linalg", "pairs": "forces", "trees": "forces/tree"}
"""The folders of the courses' pages."""

FIRST = """\
import importlib.util, os, shutil, subprocess, sys

SOURCE = "."  # a clone of nbody or its wheel; needed only where nbody is not installed, as in a rented notebook
card = shutil.which("nvidia-smi") is not None
if importlib.util.find_spec("nbody") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", SOURCE + "[cu13]" * card], check=True)
if not card:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported: kernels run in its simulator, slowly

from nbody.lessons.trial import show, trial"""

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")
LARGE = re.compile(r"(?m)^(?:\|[^|\n]*){9,}\|\n(?:\|.*\n?)+|(?:^\|.*\n){14,}")
"""A table of nine columns, or of fourteen lines, or more: nothing for a slide."""
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
CAPTION = re.compile(r"\*(?!\*)")

SLIDE, PICTURE_SIZE = 900, 800
"""The letters of a slide, and those whose place a figure takes."""

MARKDOWN = MarkdownIt().enable("table")


def notebook(course: str) -> str:
    """The notebook of a course of :data:`COURSES`, as JSON. Raises InputError: there is no such course."""
    if course not in COURSES:
        raise unknown("course", course, COURSES, meant={"nbody": "pairs"})
    folder = PACKAGE / COURSES[course]
    first, *sections = re.split(r"(?m)^(?=## )", (folder / "README.md").read_text())
    cells = [_text(re.split(r"(?m)^- \[", first)[0], folder, "slide"), _code(FIRST)]
    for section in sections:
        told, *solution = re.split(r"(?m)^(?=<details>)", section)
        idea, *look = re.split(r"(?m)^(?=- \*\*)", told, maxsplit=1)
        for number, part in enumerate((*_pages(idea), *look)):
            cells.append(_text(part, folder, "subslide" if number else "slide"))
        if name := re.match(r"## `([\w-]+)`", section):
            cells.append(_code(f'show("{name[1]}")\ntrial("{name[1]}")'))
        cells += [_text(each, folder, "skip") for each in solution]
    for number, cell in enumerate(cells):
        cell["id"] = f"{course}-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    about = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel, "nbody": machine.version()}}
    return json.dumps(about | {"cells": cells}, indent=1, ensure_ascii=False)


def _pages(text: str) -> list[str]:
    """The paragraphs, figures and tables of a section, as many together as fit on a slide."""
    lines, pages, filled = text.splitlines(keepends=True), [""], 0
    for block in MARKDOWN.parse(text):
        if not block.map or block.level:
            continue
        part = "".join(lines[slice(*block.map)])
        size = PICTURE_SIZE if PICTURE.match(part) else len(LARGE.sub("", part)) * (block.type != "heading_open")
        if filled and filled + size > SLIDE and not CAPTION.match(part):
            pages, filled = [*pages, ""], 0
        pages[-1] += part + "\n"
        filled += size
    return pages


def slides(course: str) -> str:
    """The slides of a course of :data:`COURSES`, as one HTML page. Raises InputError: there is no such course."""
    shown = []
    for cell in json.loads(notebook(course))["cells"]:
        if cell["metadata"]["slideshow"]["slide_type"] != "skip":
            page = MARKDOWN.render(LARGE.sub("*The table stands in the text of the course.*\n", cell["source"]))
            for name, data in cell.get("attachments", {}).items():
                page = page.replace(f"attachment:{name}", f"data:image/png;base64,{data['image/png']}")
            shown.append(f"<section>\n{page}</section>")
    page = Path(__file__).with_name("slides.html").read_text()
    return page.replace("{title}", f"nbody: {course}").replace("{slides}", "\n".join(shown))


def _text(text: str, folder: Path, slide: str) -> dict[str, Any]:
    """A cell of Markdown with its pictures; links to files become their names, since the files are elsewhere."""
    attached = {}
    for _, target in PICTURE.findall(text):
        path = folder / target
        attached[path.name] = {"image/png": b64encode(path.read_bytes()).decode()}
        text = text.replace(f"({target})", f"(attachment:{path.name})")
    more = {"attachments": attached} if attached else {}
    return _cell("markdown", LINK.sub(r"\1", text).strip(), slide) | more


def _code(text: str) -> dict[str, Any]:
    return _cell("code", text, "skip") | {"outputs": [], "execution_count": None}


def _cell(kind: str, text: str, slide: str) -> dict[str, Any]:
    return {"cell_type": kind, "source": text, "metadata": {"slideshow": {"slide_type": slide}}}
