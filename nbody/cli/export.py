"""``nbody export``: writes frames of a recording to files that other programs read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.groups import grouped
from nbody.cli.options import ABOUT, Overwrite, Recording, argument, count_option, text_option
from nbody.cli.streams import print_message, result
from nbody.errors import InputError
from nbody.exchange import FORMATS, format_of


@dataclass(frozen=True)
class Tables:
    """Tables instead of positions."""

    elements: Annotated[bool, typer.Option("--elements", help="Orbital elements instead: a .csv table.")] = False
    events: Annotated[bool, typer.Option("--events", help="The table of events instead: a .csv table.")] = False
    about: Annotated[str | None, text_option(ABOUT)] = None


@grouped
def export(
    recording: Recording,
    output: Annotated[Path, argument("The file to write (or -o FILE); its suffix names the format.")],
    frame: Annotated[int | None, count_option("The frame, counted from 0; by default the last one.")] = None,
    all_frames: Annotated[
        bool, typer.Option("--all", help="Every frame: numbered files, or one file if the format holds several.")
    ] = False,
    format: Annotated[str | None, text_option(f"The format, if the suffix doesn't say: {FORMATS.listing()}.")] = None,
    table: Tables = Tables(),
    overwrite: Overwrite = False,
) -> int:
    """Write frames of a recording to files that other programs read.

    Prints the files, and to standard error how another program opens the
    first one. The same formats are read by 'initial: {file: ...}'.

    \b
    Examples:
      nbody export output/run.h5 last.csv
      nbody export output/run.h5 snapshot.hdf5 --all
      nbody export output/run.h5 planets.bin --all
      nbody export output/run.h5 elements.csv --elements --all
      nbody export output/run.h5 events.csv --events
    """
    from nbody.exchange.export import export as write
    from nbody.exchange.export import export_elements, export_events, facts_of
    from nbody.trajectory import Trajectory

    if all_frames and frame is not None:
        raise InputError("--all: cannot be combined with --frame; leave one of the two out")
    if not table.elements and table.about is not None:
        raise InputError("--about: belongs to --elements; add it, or leave --about out")
    if (table.elements or table.events) and format is not None:
        raise InputError("--format: elements and events are written to .csv files; leave it out")
    if table.events and (table.elements or all_frames or frame is not None):
        raise InputError("--events: is one table of the whole run; leave --elements, --all and --frame out")
    with Trajectory(recording) as run:
        frames = range(len(run)) if all_frames else None if frame is None else [frame]
        if table.events:
            result(str(export_events(run, output, overwrite, print_message)))
            return 0
        if table.elements:
            result(str(export_elements(run, output, frames, table.about or "inner", overwrite, print_message)))
            return 0
        written, facts = write(run, output, frames, format, overwrite, print_message), facts_of(run)
    for path in written:
        result(str(path))
    if line := format_of(output, format).opening(written[0], facts):
        print_message(f"open it with: {line}")
    return 0
