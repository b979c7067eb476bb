"""The page that ``nbody info`` prints: one line per fact, rounded, and the scenario as YAML at the end."""

from math import isfinite
from statistics import median

from nbody.cli.streams import Json
from nbody.cli.summary import not_conserved, unit_of
from nbody.diagnostics.observables import ALWAYS
from nbody.errors import counted, shortened
from nbody.number_format import duration, size
from nbody.scenario.quantities import Units, shown_time
from nbody.scenario.yaml_reader import dump

MOST_NUMBERS = 6
"""The most numbers of an observable that are shown one by one."""

SHOWN_ELSEWHERE = {"status", "engine", "precision", "seed", "python", "numpy", "numba", "numba-cuda"}
"""Provenance that other lines of the page show: the first line, the packages and the scenario."""


def lines(found: Json) -> list[str]:
    """The facts as lines of text; empty facts are left out."""
    facts = _recording(found) if found["kind"] == "recording" else _scenario(found)
    shown = {name: value for name, value in facts.items() if value}
    width = max(map(len, shown))
    page = [f"{name:<{width}}  {value}" for name, value in shown.items()]
    return [*page, "", dump(found["scenario"]).rstrip()]


def _recording(found: Json) -> dict[str, str]:
    """Name and text of every line about a recording."""
    frames, planned = found["frames"], found["frames_planned"]
    facts = {
        "recording": f"{found['file']}, {size(found['file_bytes'])}, {found['status']}",
        "particles": f"{found['particles']} in {found['dimensions']} dimensions",
        "names": shortened(", ".join(f"{id} {name}" for id, name in found["names"].items()), 200),
        "units": _units(found),
        "frames": f"{frames}" if frames == planned else f"{frames}, with room for the {planned} planned",
    }
    if frames:
        (begin, end), (first, last) = found["time"], found["steps"]
        units = Units(**found["scenario"]["units"]) if found["units"] else Units()
        factor, unit = shown_time(units.symbol("time"))
        times = f"{factor * begin:g} to {factor * end:g} {unit}".rstrip()
        facts["time"] = f"{times} (steps {first} to {last})"
        energies = " to ".join(f"{energy:.9g}" for energy in found["energy"])
        facts["energy"] = f"{energies} {units.symbol('energy')}".rstrip()
        error = f"{found['energy_error']:+.2e}, largest {found['energy_error_largest']:+.2e}"
        facts["energy error"] = not_conserved(found["without_potential"]) if found["without_potential"] else error
        facts |= _collisions(found) | _last(found, "events")
        facts |= {
            name.replace("_", " "): f"{_change(*values)} {unit_of(name, units)}".rstrip()
            for name, values in found["observables"].items()
            if name not in ALWAYS and name != "bodies"
        }
    if "ensemble" in found:
        facts |= _ensemble(found["ensemble"])
    if "damaged" in found:
        facts["checksums"] = "; ".join(found["damaged"]) or "all right"
    if found.get("pairs", {}).get("joined"):
        pairs = found["pairs"]
        facts["pairs"] = f"{pairs['present']} by Kepler's solution ({pairs['joined']} formed, {pairs['parted']} dissolved)"
    return facts | {"integrator": _integrator(found)} | _origin(found["provenance"])


def _ensemble(found: Json) -> dict[str, str]:
    """The summary of an ensemble's systems."""
    ends = ", ".join(f"{count} {name}" for name, count in found["status"].items())
    errors = ", ".join(f"{value:.1e} ({float(q):.0%})" for q, value in found["energy_error"].items())
    first, last = (f"{time:.9g}" for time in found["time"])
    times = first if first == last else f"{first} to {last}"
    return {
        "systems": f"{found['systems']} of {found['bodies']} bodies: {ends}",
        "their errors": f"|ΔE/E| {errors}, of those {next(iter(found['status']))}" if errors else "",
        "their steps": f"{found['steps']} in all, to t = {times}; closest approach {found['closest_approach']:.4g}",
    }


def _collisions(found: Json) -> dict[str, str]:
    """The numbers of collisions and of changes of the bodies, and the last ones."""
    if (left := found.get("particles_left")) is None:
        return {}
    more = f"; {counted(left, 'particle is', 'particles are')} left" if left < found["particles"] else ""
    latest = {**found, "last_changes": found.get("last_changes", [])[-1:]}
    return _last(found, "collisions", more) | _last(latest, "changes", more)


def _last(found: Json, kind: str, more: str = "") -> dict[str, str]:
    """The number of collisions or of events, and the last ones; empty if the run did not look for them."""
    if kind not in found:
        return {}
    lines = found[f"last_{kind}"]
    names = [f"last {kind[:-1]}", *(" " * (len(kind) + k) for k in range(1, len(lines)))]  # blank, and distinct
    return {kind: f"{found[kind]}{more}"} | dict(zip(names, lines, strict=False))


def _change(first: float | list[float], last: float | list[float]) -> str:
    """An observable at the first and at the last frame; of many systems the least, the median and the largest."""
    return " to ".join(_numbers(value if isinstance(value, list) else [value]) for value in (first, last))


def _numbers(values: list[float]) -> str:
    if len(values) <= MOST_NUMBERS:
        return ", ".join(f"{x:.4g}" for x in values)
    finite = sorted(x for x in values if isfinite(x))
    if not finite:
        return f"{len(values)} numbers that are not finite"
    return f"{finite[0]:.4g}, {median(finite):.4g}, {finite[-1]:.4g} (least, median, largest of {len(finite)})"


def _origin(provenance: Json) -> dict[str, str]:
    """How a recording was made; what other programs have noted follows after the facts that nbody writes."""
    known = {name: value for name, value in provenance.items() if name not in SHOWN_ELSEWHERE}

    def joined(*names: str) -> str:
        return ", ".join(str(value) for value in (known.pop(name, "") for name in names) if value not in ("", None))

    cores, driver, device = known.pop("cores", ""), known.pop("driver", ""), known.pop("device", "")
    if device != known.get("cpu"):
        known["card"] = ", ".join(filter(None, [str(device), driver and f"driver {driver}"]))
    known["cpu"] = joined("cpu", "simd") + (f", {counted(cores, 'core')}" if cores else "")
    started, wall = str(known.pop("started", "")), known.pop("wall_s", None)
    errors, hosts, _ = known.pop("force_error", None), known.pop("hosts", {}), known.pop("without_potential", None)
    known["ranks"] = joined("ranks", "mpi") + (f"; {_flat(hosts)}" if hosts else "")
    facts = {
        "force error": _force_error(errors) if isinstance(errors, dict) and "median" in errors else "",
        "nbody": joined("version", "git"), "command": joined("command"),
        "started": started.replace("T", " ").replace("+00:00", " UTC"), "took": duration(wall) if wall else "",
        "cpu": joined("cpu"), "card": joined("card"), "ranks": joined("ranks"), "platform": joined("platform"),
    }  # fmt: skip
    return facts | {name: _flat(value) for name, value in known.items()}


def _force_error(errors: Json) -> str:
    """The measured errors of the forces."""
    shown = (f"{name} {float(errors[name]):.2g}" for name in ("median", "99 %", "largest") if name in errors)
    bodies = counted(errors["bodies"], "body", "bodies") if "bodies" in errors else "bodies"
    return f"{', '.join(shown)}, of {bodies} at the start, against direct sums in float64"


def _scenario(found: Json) -> dict[str, str]:
    """Name and text of every line about a scenario."""
    memory = ", ".join(f"{size(value)} of {place}" for place, value in found["memory_bytes"].items())
    frames = counted(found["frames"], "frame")
    return {
        "scenario": found["file"],
        "particles": f"{found['particles']}" + (f" in {found['systems']} systems" if found["systems"] else ""),
        "units": _units(found),
        "engine": f"{found['engine']} ({found['engine_reason']})",
        "but": found["engine_problem"],
        "needs": f"{memory} ({size(found['memory_free'])} are free)",
        "integrator": _integrator(found),
        "takes": f"about {duration(found['expected_s'])}, by an earlier run's speed" if found["expected_s"] else "",
        "recording": f"{size(found['file_bytes'])} for {frames} ({size(found['disk_free'])} are free)",
    }


def _integrator(found: Json) -> str:
    """The facts about the scheme; empty if it is not known."""
    if "order" not in found:
        return ""
    count, lengths = found["evaluations_per_step"], found["step_lengths"]
    evaluations = f"{counted(count, 'force evaluation')} per step"
    frames = f", frames are {found['frames_are']}" if lengths == "individual" else ""
    return f"order {found['order']}, {evaluations}, {lengths} steps{frames} ({found['source']})"


def _units(found: Json) -> str:
    """The units and the G that follows from them; empty if the scenario has none."""
    return f"{found['units']}; G = {found['scenario']['gravity']['G']:.9g}" if found["units"] else ""


def _flat(value: object) -> str:
    """A value on one line; a mapping as ``key value`` pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
