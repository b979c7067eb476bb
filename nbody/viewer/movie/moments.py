"""Which moments of a run the pictures of a movie show."""

import numpy as np

from nbody.errors import InputError

Array = np.ndarray

MOST = 1_000_000
"""The most pictures of a movie: nine hours at 30 per second."""


def moments(
    time: Array, first: int, last: int, fps: float, seconds: float | None = None, speed: float | None = None
) -> Array:
    """The moments to draw, counted in frames, (pictures,) float64.

    By default each frame from ``first`` to ``last`` is one picture. With ``seconds`` or ``speed`` the pictures are evenly
    spaced in the time of the run, between its frames too.

    Args:
        time: (T,) the time of each frame.
        first, last: the first and last frame to show, counted from 0; may be in either order.
        fps: pictures per second.
        seconds: how long the movie lasts.
        speed: units of the run's time per second of the movie.

    Raises:
        InputError: there would be too many pictures, or one frame would be the whole movie.
    """
    if speed is not None:
        if first == last:
            raise InputError(f"--speed {speed:g}: there is one frame to show; give --seconds instead")
        seconds = abs(float(time[last] - time[first])) / speed
    if seconds is None:
        if first == last:
            raise InputError(
                "there is one frame to show, which makes no movie; save it with 'nbody view … --screenshot', or give "
                "--seconds and a moving camera (--spin, --path)"
            )
        return np.arange(first, last + 1.0) if first < last else np.arange(first, last - 1.0, -1.0)
    count = max(1, round(seconds * fps))
    if count > MOST:
        raise InputError(f"this movie would have {count} pictures, more than {MOST}; make it shorter (--seconds)")
    frames = np.arange(min(first, last), max(first, last) + 1)
    times = time[frames]
    if times[-1] > times[0]:
        at = np.interp(np.linspace(time[first], time[last], count), times, frames)
    else:  # a file without times
        at = np.linspace(first, last, count)
    return np.round(at, 9)  # a frame, where rounding left nearly one
