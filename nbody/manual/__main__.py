"""``python -m nbody.manual FOLDER``: build the manual by Sphinx, on all cores; with ``--strict`` warnings are errors. The
package is the source folder, so that its READMEs are pages where they stand."""

import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from nbody.machine import cores, version
from nbody.manual.generated import filled

PACKAGE = Path(__file__).resolve().parents[1]

SETTINGS = {
    "project": "nbody",
    **dict.fromkeys(("version", "release"), version()),
    "copyright": "the nbody authors",
    "extensions": ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"],
    "root_doc": "manual/index",
    "include_patterns": ["manual/**.md", "*/README.md", "*/*/README.md", "PLUGINS.md"],
    "html_theme": "furo",
    "html_title": f"nbody {version()}",
    "html_copy_source": False,
    "smartquotes": False,  # "--gpu" stays as it is typed
    "html_show_sphinx": False,
    "myst_heading_anchors": 3,
    "myst_enable_extensions": ["colon_fence"],
    "autodoc_member_order": "bysource",
    "autodoc_typehints": "none",
    "autodoc_preserve_defaults": True,
    "napoleon_use_ivar": True,
}


class Paths(SphinxTransform):
    """A picture's path is relative to the file, which may be a link (``scenarios``); a picture that is not there, as in a
    wheel, becomes its text. So does the link to a folder, which only a repository shows."""

    default_priority = 1

    def apply(self, **options: Any) -> None:
        page = Path(self.env.doc2path(self.env.docname))
        for link in list(self.document.findall(addnodes.pending_xref)):
            target = page.resolve().parent / str(link.get("reftarget", ""))
            if link.get("reftarget") and target.is_dir():
                link.replace_self(link.children)
        for image in list(self.document.findall(nodes.image)):
            path = page.resolve().parent / image["uri"]
            if path.exists():
                image["uri"] = "/" + os.path.relpath(path.resolve(), PACKAGE)
            else:
                image.replace_self(nodes.emphasis(text=image.get("alt", "")))


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def build(folder: Path, strict: bool = False) -> int:
    """Write the HTML into a folder; ``manual/index.html`` is its first page. Returns the exit code.

    Args:
        strict: after a warning it is 1.
    """
    settings = SETTINGS | ({} if strict else {"suppress_warnings": ["myst", "ref", "download"]})
    app = Sphinx(
        PACKAGE, None, folder, folder / ".doctrees", "html", settings, status=None, warningiserror=strict, freshenv=True,
        parallel=cores(),
    )  # fmt: skip
    app.connect("source-read", _fill)
    app.add_transform(Paths)
    app.build(force_all=True)
    return app.statuscode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]), "--strict" in sys.argv[2:]))
