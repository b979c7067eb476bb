"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.completion import RECORDINGS, files, recordings_and_scenarios, scenarios
from nbody.cli.numbers import text_option

Scenario = Annotated[
    Path,
    typer.Argument(
        help="The scenario: a YAML file, or the name of one that comes with nbody, such as disk.",
        show_default=False,
        autocompletion=scenarios,
    ),
]
Recording = Annotated[
    Path,
    typer.Argument(
        help="A recording, an .h5 file of 'nbody run'.", show_default=False, autocompletion=files(*RECORDINGS)
    ),
]
RecordingOrScenario = Annotated[
    Path,
    typer.Argument(
        help="A recording (.h5), or a scenario: a .yaml, or the name of one that comes with nbody.",
        show_default=False,
        autocompletion=recordings_and_scenarios,
    ),
]
Gpus = Annotated[
    str | None,
    text_option(
        "The GPUs that compute this time: their number, all, or which ones: 0,2; by default as many as before.",
        metavar="<gpus>",
    ),
]
Size = Annotated[str, typer.Option(help="Width and height of the picture in pixels.")]
Hud = Annotated[bool, typer.Option(help="Text on the picture.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing file (else it is kept under a numbered name).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result: no progress bar, no messages.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
