"""Where a benchmark's files go: ``output/bench.json`` and ``output/bench.png`` unless told otherwise."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nbody.bench.report import Report, load
from nbody.errors import InputError

SUFFIXES = (".json", ".png")


@dataclass(frozen=True)
class Output:
    """The two files of a benchmark. They can be made again, so earlier ones are replaced."""

    report: Path
    picture: Path

    @classmethod
    def at(cls, place: Path, stem: str = "bench") -> "Output":
        """The files in a folder, or beside each other under the name of a .json or .png file.

        Raises:
            InputError: the folder can't be made or written to, or what stands there is no report, and would be lost
                (better known before the measuring than after).
        """
        base = place.with_suffix("") if place.suffix in SUFFIXES else place / stem
        try:
            base.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--output: {base.parent} can't be made ({error.strerror}); name another folder") from None
        report, picture = (base.with_name(base.name + suffix) for suffix in SUFFIXES)
        for path in (base.parent, *(p for p in (report, picture) if p.exists())):
            if not os.access(path, os.W_OK) or (path != base.parent and path.is_dir()):
                raise InputError(f"--output: {path} can't be written; name another folder")
        if report.exists() and report.stat().st_size:
            try:
                load(report)
            except InputError:
                raise InputError(f"--output: {report} exists and is no report; name another folder or file") from None
        return cls(report, picture)

    def replaced(self) -> list[Path]:
        """The files that writing will replace."""
        return [path for path in (self.report, self.picture) if path.exists()]

    def write(self, found: Report, draw: Callable[[Report, Path], None]) -> None:
        """Write the report and draw its picture, by one of the functions of a ``plot`` module."""
        draft = self.report.with_name(self.report.name + ".part")
        draft.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        os.replace(draft, self.report)  # whole, or not at all
        draw(found, self.picture)
