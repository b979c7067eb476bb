"""The scenario: the bodies, the law between them, the integration scheme, and what is recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, PrivateAttr, model_validator

from nbody.errors import InputError
from nbody.given import path_text, shown
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.registry import Registry
from nbody.scenario.bodies import Component, FromArrays, Initial, initial_from
from nbody.scenario.collisions import CollisionKeys
from nbody.scenario.ensemble import Ensemble
from nbody.scenario.escape import EscapeKeys
from nbody.scenario.events import EventChoice, events_from
from nbody.scenario.groups import (
    CheckpointKeys,
    EnergyLimit,
    EngineChoice,
    FieldChoice,
    GravityKeys,
    IntegratorKeys,
    Record,
    UnitKeys,
    check_precision,
    fields_from,
    gravity_from,
    scale_from,
    units_from,
)
from nbody.scenario.options import ELSEWHERE, Precision
from nbody.scenario.overrides import overridden, plain_python, with_keywords
from nbody.scenario.quantities import Units
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import Group, Text, Written, unknown_key, validated
from nbody.scenario.yaml_reader import dump, read_file, read_text


class Scenario(Group):
    """The description of a run. Make one with :meth:`load`, :meth:`from_text` or :meth:`from_dict`; it does not change.

    Attributes:
        name: what figures and windows call the run; by default the name of the file.
        units: the units of the numbers, which set G; without them numbers have no units, and G is 1.
        initial: the bodies.
        gravity: the law between two bodies.
        fields: external fields, one or a list.
        ensemble: many small systems in one run.
        integrator: the scheme, its time step, and the end of the run.
        collisions: what happens when two bodies touch.
        events: moments to find within the steps, one or a list.
        escape: which bodies leave, and are removed, or end the run.
        engine: what computes the forces.
        precision: of the forces; mixed: positions in float64, pairs in float32; auto: the first that keeps the digits of the
            bodies. Without the key up to 64 bodies on the engine cpu have float64, unless an accuracy is asked for.
        record: which moments become frames, and what is recorded with them.
        checkpoint: how often the state is saved.
        on_energy_error: what to do about a wrong energy.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {**Group.elsewhere, **ELSEWHERE}

    name: Text = "run"
    units: Annotated[Units | None, BeforeValidator(units_from), Written(UnitKeys)] = None
    initial: Annotated[Initial, BeforeValidator(initial_from)]
    gravity: Annotated[Gravity, BeforeValidator(gravity_from), Written(GravityKeys)] = Gravity()
    fields: Annotated[tuple[FieldChoice, ...] | None, BeforeValidator(fields_from)] = None
    ensemble: Ensemble | None = None
    integrator: IntegratorKeys
    collisions: CollisionKeys | None = None
    events: Annotated[tuple[EventChoice, ...] | None, BeforeValidator(events_from)] = None
    escape: EscapeKeys | None = None
    engine: EngineChoice = EngineChoice()
    precision: Precision = "float32"
    record: Record = Record()
    checkpoint: CheckpointKeys = CheckpointKeys()
    on_energy_error: EnergyLimit | None = None

    _source: ScenarioText = PrivateAttr(default_factory=ScenarioText)

    @classmethod
    def load(cls, path: str | Path, assignments: Sequence[str] = (), **options: object) -> Self:
        """Read a YAML file, or the packaged scenario of a name such as ``disk``, and replace values as :meth:`override`
        does; they may be values that the file lacks. Raises InputError: one line with the file, the line, the key and the
        fix."""
        return cls.from_source(overridden(read_file(Path(path_text(path))), assignments, "--set", options))

    @classmethod
    def from_text(cls, text: str, source: str = "scenario", folder: str | Path = ".") -> Self:
        """Read YAML text. Errors call it ``source``; a relative ``initial.file`` starts from ``folder``."""
        return cls.from_source(read_text(text, source, Path(folder)))

    @classmethod
    def from_dict(
        cls, values: Mapping[str, object], folder: str | Path = ".", keywords: Mapping[str, object] | None = None
    ) -> Self:
        """Make a scenario from Python values, which may include NumPy scalars; ``keywords`` replace some of them as
        :meth:`with_keywords` does."""
        if not isinstance(values, Mapping):
            raise InputError(f"a scenario is a mapping of keys, got {shown(values)}")
        source = ScenarioText(folder=Path(folder), values=plain_python(values))
        return cls.from_source(with_keywords(source, keywords or {}, cls.model_fields))

    @classmethod
    def from_source(cls, source: ScenarioText) -> Self:
        """The scenario of values with their places in a file. Raises InputError."""
        stem = Path(source.name).stem
        default: dict[str, object] = {"name": stem} if stem and stem.isprintable() else {}
        if isinstance(source.values.get("units", False), Mapping):
            default["gravity"] = {}  # whose G follows from the units
        source = replace(source, scale=scale_from(source))
        return validated(cls, default | dict(source.values), source)

    def model_post_init(self, source: object) -> None:
        """Keep the source of the values, which pydantic passes as the validation's context."""
        self._source = source if isinstance(source, ScenarioText) else ScenarioText(values=self.resolved())

    @model_validator(mode="after")
    def _escapes_are_events(self) -> Self:
        """Without their removal."""
        if self.escape is None or self.escape.action == "remove":
            return self
        return self.model_copy(update={"escape": None, "events": (*(self.events or ()), self.escape.event())})

    @model_validator(mode="after")
    def _within_the_precision(self) -> Self:
        check_precision(self.gravity, self.integrator, self.precision)
        return self

    def override(self, assignments: Sequence[str] = (), *, by: str = "--set", **options: object) -> Self:
        """A copy in which options of the command line replace values; options that are None change nothing.

        Args:
            assignments: values for any key, such as ``"engine.theta=0.5"``; the value is read as YAML.
            by: the option that gives the assignments.
            options: names of :data:`OPTIONS` and their values.

        Raises:
            InputError: one line that begins with the option, as in ``--dt: must not be 0``.
        """
        return self.from_source(overridden(self._source, assignments, by, options))

    def with_keywords(self, values: Mapping[str, object]) -> Self:
        """A copy in which keyword arguments of Python replace values (:mod:`nbody.scenario.options`).

        Raises:
            InputError: one line that begins with the keyword.
        """
        return self.from_source(with_keywords(self._source, values, type(self).model_fields))

    def in_precision(self, precision: str) -> Self:
        """A copy in another precision; :func:`~nbody.scenario.groups.check_precision` says if its numbers fit a lower
        one."""
        found = self.model_copy(update={"precision": precision})
        found._source = self._source.with_option(("precision",), "precision", precision)
        return found

    def with_bodies(self, bodies: Particles) -> Self:
        """A copy whose bodies are these arrays, instead of being made as this scenario says."""
        found, values = self.model_copy(), self._source.values
        if not (isinstance(self.initial, FromArrays) and self.initial.particles == bodies.count):
            initial = FromArrays(particles=bodies.count)
            found, values = self.model_copy(update={"initial": initial}), {**values, "initial": initial.model_dump()}
        found._source = replace(self._source, values=values, bodies=bodies)
        return found

    def where(self, field: str, *others: str) -> str:
        """The beginning of an error about ``field``, which may not fit ``others``; see :meth:`ScenarioText.where`."""
        return self._source.where(*(tuple(each.split(".")) for each in (field, *others)))

    @property
    def source(self) -> ScenarioText:
        """Where each value was written."""
        return self._source

    @property
    def text(self) -> str:
        """The YAML as written, without options; for a scenario made in Python, the YAML of its values."""
        return self._source.text or self.to_yaml()

    def resolved(self) -> dict[str, Any]:
        """All values, including defaults and options, in plain types. (:func:`nbody.initial.resolved_initial` adds the
        defaults of the generator's parameters.)"""
        return self.model_dump(exclude_none=True)

    def to_yaml(self) -> str:
        """:meth:`resolved` as YAML that :meth:`from_text` reads back the same."""
        return dump(self.resolved())


def component(scenario: Scenario, at: str, chosen: Component, registry: Registry, name: str = "") -> tuple[Any, Group]:
    """The class of a component and its options.

    Args:
        scenario: the scenario, whose lines errors name.
        at: the key of the group ``chosen``, as ``engine`` or ``fields.0``.
        name: the component's name, if it differs from the written one (which may be ``auto``).

    Returns:
        The class, and an instance of its ``Options``; the latter is an instance of the class itself if that is a group.

    Raises:
        InputError: one line about an unknown name or option, or a wrong value.
    """
    key = chosen.named_by
    name = name or getattr(chosen, key)
    kind = registry.load(name, "" if name in registry else scenario.where(f"{at}.{key}"))
    model: type[Group] = getattr(kind, "Options", kind)
    for option in chosen.options:
        if option not in model.model_fields:
            known = [*type(chosen).model_fields, *model.model_fields]
            message = type(chosen).elsewhere.get(option) or unknown_key(option, known, known)
            raise InputError(scenario.where(f"{at}.{option}", f"{at}.{key}") + message)
    return kind, validated(model, chosen.options, scenario.source, tuple(at.split(".")))
