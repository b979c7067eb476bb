"""Pictures of a simulation on a GPU: a kernel packs the shown bodies into device memory, from where they are drawn.

    body, velocity ─ pack ─► a slot on the device ─┬─ interop ──────────► vertex buffers
                                                   └─► pinned memory ─► vertex buffers   (no interop)

There is interop if an NVIDIA driver draws, the GPU that draws is the one that computes, and no copy into a vertex buffer has
failed. Otherwise positions and velocities pass through pinned memory on the host.
"""

import queue
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nbody.compute import cuda, kernel, mark, out_of_memory
from nbody.compute.gpu.opengl_buffers import SharedBuffers
from nbody.errors import DeviceError, printable, shortened
from nbody.state.device import DeviceState
from nbody.viewer.sources.frames import Array, ShownFrame

if TYPE_CHECKING:
    from vispy.gloo import VertexBuffer


SLOTS = 4  # one is shown, one was shown before, one is ready to be shown, one is filled

THREADS = 128

UNTRIED = "not yet tried"  # whether there is interop is found out when the first slot is drawn


@kernel("gpu")
def pack(body, velocity, rows, length, speed, positions, velocities):
    """Copy position and velocity of the bodies ``rows`` (all if it is empty), times ``length`` and ``speed``.

    body, velocity: (N, 4) as in :mod:`nbody.state.device`; rows: (shown,) or (0,) int64; length, speed: in the dtype of the
    state; positions, velocities: (shown, 3) float32.
    """
    i = cuda.grid(1)
    if i < positions.shape[0]:
        j = rows[i] if rows.shape[0] > 0 else i
        for axis in range(3):
            positions[i, axis] = np.float32(body[j, axis] * length)
            velocities[i, axis] = np.float32(velocity[j, axis] * speed)


class Slot:
    """Device memory for one picture: (shown, 3) float32, and ``pinned`` (2, shown, 3) on the host, if it is in use; and two
    events: the memory is ``packed``; it has been ``read``, and may be filled again."""

    def __init__(self, shown: int) -> None:
        self.positions, self.velocities = (cuda.device_array((shown, 3), np.float32) for _ in range(2))
        self.pinned: Array | None = None
        self.packed, self.read = mark(cuda.default_stream()), mark(cuda.default_stream())


class DeviceFrames:
    """The slots of a window, filled on the simulation's thread and drawn on the window's.

    ``rows`` are the ``shown`` bodies that are drawn, empty for all; ``units`` the picture's units of length and speed.
    Raises DeviceError if there is too little GPU memory.
    """

    def __init__(self, rows: Array, shown: int, units: tuple[float, float]) -> None:
        self.units = units
        with out_of_memory(f"a picture of {shown} particles", SLOTS * shown * 24):
            self._rows = cuda.to_device(np.ascontiguousarray(rows, np.int64))
            self._slots = [Slot(shown) for _ in range(SLOTS)]
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        for slot in self._slots:
            self._free.put(slot)
        self._shared: SharedBuffers | None = None
        self.problem = UNTRIED
        """Why there is no interop; empty if there is."""

    # --- On the simulation's thread ---

    def frame(self, state: DeviceState, time: float, energy_error: float, mass: Array) -> "DeviceFrame":
        """The present state as a frame of ``time`` (in the picture's unit). Waits until it is packed."""
        slot, stream = self._free.get(), state.stream
        slot.read.wait(stream)
        self._pack(state, self._rows, slot)
        pinned = None
        if self.problem:
            if slot.pinned is None:
                slot.pinned = cuda.pinned_array((2, *slot.positions.shape), np.float32)
            slot.positions.copy_to_host(slot.pinned[0], stream=stream)
            slot.velocities.copy_to_host(slot.pinned[1], stream=stream)
            pinned = slot.pinned
        slot.packed.record(stream)
        slot.packed.synchronize()
        return DeviceFrame(slot, self, pinned, (time, state.clock.step, energy_error, mass))

    def velocities(self, state: DeviceState, rows: Array) -> Array:
        """The velocities of some bodies in the picture's units, (rows, 3) float32 on the host."""
        found = Slot(len(rows))
        self._pack(state, cuda.to_device(rows.astype(np.int64)), found)
        return found.velocities.copy_to_host()

    def _pack(self, state: DeviceState, rows, slot: Slot) -> None:
        length, speed = (state.dtype.type(1 / unit) for unit in self.units)
        shown = slot.positions.shape[0]
        pack[-(-shown // THREADS), THREADS, state.stream](
            state.body, state.velocity, rows, length, speed, slot.positions, slot.velocities
        )

    def release(self, slot: Slot) -> None:
        """Declare that a slot is no longer shown."""
        self._free.put(slot)

    # --- On the window's thread ---

    def copy(self, slot: Slot, buffers: "tuple[VertexBuffer, VertexBuffer]") -> bool:
        """Copy a slot into vertex buffers on the device. False if this failed; it is then not tried again."""
        if self.problem == UNTRIED:
            self._shared, self.problem = shared_buffers()
        if self._shared is None:
            return False
        try:
            names = [opengl_name(buffer) for buffer in buffers]
            self._shared.copy((slot.positions, slot.velocities), names, slot.packed, slot.read)
        except DeviceError as error:
            self._shared, self.problem = None, str(error)
            return False
        return True


class DeviceFrame(ShownFrame):
    """A frame in device memory. Its arrays are copied to the host when somebody asks for them."""

    def __init__(
        self, slot: Slot, frames: DeviceFrames, pinned: Array | None, facts: tuple[float, int, float, Array]
    ) -> None:
        self.number, (self.time, self.step, self.energy_error, self.mass) = 0, facts
        self._slot, self._frames, self._pinned = slot, frames, pinned

    @cached_property
    def position(self) -> Array:  # type: ignore[override]
        return self._host(0)

    @cached_property
    def velocity(self) -> Array:  # type: ignore[override]
        return self._host(1)

    def _host(self, which: int) -> Array:
        if self._pinned is not None:
            return self._pinned[which].copy()
        stream = cuda.stream()  # not the default stream, which would wait for the forces
        copy = (self._slot.positions, self._slot.velocities)[which].copy_to_host(stream=stream)
        stream.synchronize()
        return copy

    def on_host(self) -> ShownFrame:
        return ShownFrame(self.number, self.position, self.velocity, self.time, self.step, self.energy_error, self.mass)

    def fill(self, position: "VertexBuffer", velocity: "VertexBuffer") -> None:
        if self._frames.copy(self._slot, (position, velocity)):
            return
        if self._pinned is None:
            super().fill(position, velocity)
        else:
            position.set_data(self._pinned[0])
            velocity.set_data(self._pinned[1])

    def release(self) -> None:
        self._frames.release(self._slot)


def shared_buffers() -> tuple[SharedBuffers | None, str]:
    """What shares buffers with the current OpenGL context; or None, and the reason."""
    from vispy.gloo import gl
    from vispy.gloo.context import get_current_canvas

    if get_current_canvas() is None:
        return None, "nothing is drawn"
    vendor = str(gl.glGetParameter(gl.GL_VENDOR))
    if "NVIDIA" not in vendor:
        return None, f"{shortened(printable(vendor), 40)} draws"
    try:
        return SharedBuffers(), ""
    except DeviceError as error:
        return None, str(error)


def opengl_name(buffer: "VertexBuffer") -> int:
    """The OpenGL name of a vertex buffer, which is created if need be."""
    from vispy.gloo.context import get_current_canvas

    context = get_current_canvas().context
    context.glir.associate(buffer.glir)
    context.flush_commands()
    return int(context.shared.parser.get_object(buffer.id).handle)
