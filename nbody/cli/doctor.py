"""``nbody doctor``: reports what works on this machine, what is missing, and how to install it."""

from nbody.cli.options import AsJson
from nbody.cli.streams import result, result_json


def doctor(as_json: AsJson = False) -> int:
    """Report what works on this machine, what is missing, and how to install it.

    Checks Python and its packages, the processor, the GPU and its driver,
    the engine that auto chooses and how many particles fit, OpenGL with and
    without a window, and the disk; and computes a force as a test. Exits
    with 0 if the program can run, even if something else is missing.
    Under mpirun or srun it adds a line per rank, and the speed with which
    they exchange forces.

    \b
    Examples:
      nbody doctor
      nbody doctor --json
      mpirun -n 4 nbody doctor
    """
    from nbody.doctor import BROKEN, examine, examine_ranks
    from nbody.parallel import team

    findings = [*(examine() if team().first else ()), *examine_ranks()]
    broken = any(finding.state == BROKEN for finding in findings)
    if as_json:
        found = {f.topic: {"state": f.state, "text": f.text, "remedy": f.remedy, **f.facts} for f in findings}
        result_json({"ok": not broken, "findings": found})
        return int(broken)
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        result(f"{finding.state:<8} {finding.topic:<{width}}  {finding.text}")
        if finding.remedy:
            result(f"{'':<8} {'':<{width}}  -> {finding.remedy}")
    return int(broken)
