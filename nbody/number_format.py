"""Formats numbers with three digits and a prefix."""


def rate(value: float | None) -> str:
    """A number with its prefix: 2.5e10 is ``25.0 G``; a dash for None."""
    if value is None:
        return "–"
    value = _rounded(value)
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{_three_digits(value / factor)} {prefix}"
    return f"{_three_digits(value)} "


def duration(seconds: float | None) -> str:
    """Seconds with a unit that fits: 5.32e-05 is ``53.2 µs``; a dash for None."""
    if seconds is None:
        return "–"
    seconds = _rounded(seconds)
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{_three_digits(seconds / factor)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def size(count: float) -> str:
    """Bytes in decimal units: 1500000 is ``1.50 MB``."""
    count = _rounded(count) if count >= 1e3 else count
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{_three_digits(count / factor)} {unit}"
    return f"{count:.0f} bytes"


def _rounded(value: float) -> float:
    """To three digits, after which 999999 is a million."""
    return float(f"{value:.3g}")


def _three_digits(value: float) -> str:
    """0 to 999 as ``1.00``, ``25.0`` or ``360``; larger numbers in full."""
    return f"{value:#.3g}".rstrip(".") if abs(value) < 999.5 else f"{value:.0f}"
