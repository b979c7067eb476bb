"""The groups of bodies that meet in a step of :mod:`.hybrid` on a GPU, as the lists that :mod:`.encounters_gpu` reads.

Bodies with mass that are near each other, directly or through others, are a group, and so is one that is near the star. A
body without mass that meets others has its own group with copies of them, and is its owner: only its motion is kept.
"""

from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.collisions.contact import any_contact_of_few
from nbody.integrators.collisions.span import Encounter
from nbody.integrators.solvers.encounters_gpu import (
    COMET,
    COUNT,
    ENDS,
    FAILED,
    MOST,
    MOVES_WITH_STAR,
    NO_OWNER,
    NOTED,
    OWNER,
    START,
    WORK,
    Outcome,
)
from nbody.integrators.solvers.pair_forces import FREE, TEST_BODY

FIRST_ROOM = 4 if SIMULATED else 128
"""The most groups at first; four times as many members."""

ENDS_PER_GROUP = 8
"""The room for members of steps in which bodies may touch, in units of the room for groups."""


class Kinds(NamedTuple):
    """Whether there are groups, some of them move with the star, and some have more than :data:`.MOST` members."""

    any: bool
    with_star: bool
    large: bool


class Groups:
    """The groups of one step after the other.

    Args:
        m: (N,) the masses.
        stream: of the device.

    Attributes:
        room: the most groups, and the most steps in which bodies may touch.
        kinds: which kinds of groups there are.
        memory: of the device, in which large groups move.
        outcome: an :class:`.Outcome` of the device.
    """

    def __init__(self, m: np.ndarray, stream: Any) -> None:
        self._m, self._stream = m, stream
        self._label, self._place = np.arange(len(m), dtype=np.int32), np.zeros(len(m), np.int32)
        self._make_room(FIRST_ROOM)

    def _make_room(self, room: int) -> None:
        self.room, rows = room, ENDS_PER_GROUP * room
        shapes = (room + 1, 4), (4 * room, 2)
        self._host = [cuda.pinned_array(shape, np.int32) for shape in shapes]
        self._device = [cuda.device_array(shape, np.int32) for shape in shapes]
        self.memory = cuda.device_array((WORK, 3 * 5 * room), np.float64)
        self.outcome = Outcome(
            cuda.device_array((room, 2), np.int32), cuda.device_array((room, 2), np.float64),
            cuda.device_array((rows, 12), np.float64),
        )  # fmt: skip
        self._counts = cuda.pinned_array((1, 4), np.int32)
        self._counts[:] = 0
        self._groups, self._members = (rows[:0] for rows in self._host)
        self.kinds = Kinds(False, False, False)

    @property
    def lists(self) -> tuple[Any, Any]:
        """The groups and members of the device."""
        return self._device[0], self._device[1]

    def form(self, numbers: np.ndarray) -> bool:
        """Form the groups of pairs i > j, and of bodies (i, i) near the star, from sorted numbers i N + j. Returns False
        if they are those of before."""
        before = self._groups.copy(), self._members.copy()
        pairs = np.stack(np.divmod(numbers, len(self._m)), axis=1)
        ids = np.unique(pairs)
        while True:
            count, length = _form(pairs, ids, self._m, self._label, self._place, *self._host)
            if count <= self.room and length <= len(self._host[1]):
                break
            self._make_room(2 * max(count, length // 4))
        self._groups, self._members = self._host[0][1 : count + 1], self._host[1][:length]
        if all(map(np.array_equal, before, (self._groups, self._members))):
            return False
        self._counts[:], columns = 0, self._groups.T
        with_star, large = columns[MOVES_WITH_STAR].any(), (columns[COUNT] > MOST).any()
        self.kinds = Kinds(count > 0, bool(with_star), bool(large))
        return True

    def send(self) -> None:
        """Copy them to the device."""
        for host, device in zip(self._host, self._device, strict=True):
            device.copy_to_device(host, stream=self._stream)

    def fetch(self) -> None:
        """Copy what moving them has found from the device."""
        self._device[0][:1].copy_to_host(self._counts, stream=self._stream)

    @property
    def failed(self) -> bool:
        """The steps of a group have become too short."""
        return bool(self._counts[0, FAILED])

    @property
    def touching(self) -> int:
        """The number of steps in which bodies may touch."""
        return int(self._counts[0, NOTED])

    def has_room(self) -> bool:
        """True if there was room for all of these steps; there is from now on."""
        steps, rows = self._counts[0, [NOTED, ENDS]]
        if steps <= self.room and rows <= ENDS_PER_GROUP * self.room:
            return True
        self._make_room(2 * max(int(steps), -(-int(rows) // ENDS_PER_GROUP)))
        return False

    # --- Contacts ---

    def encounter(self, radius: np.ndarray, dt: float) -> Encounter:
        """The bodies that meet, and the steps in which they touch."""
        n, members = len(self._m), self._members[:, 0]
        pairs, hurried = list[tuple[int, int]](), np.zeros(n, np.bool_)
        for first, count, owner, with_star in self._groups.tolist():
            own = members[first : first + count].tolist()
            hurried[own if owner == NO_OWNER else owner] |= bool(with_star)
            pairs += [(i, j) for i in own for j in own if i > j and owner in (NO_OWNER, i, j)]
        found, times = list[tuple[np.ndarray, np.ndarray, int]](), list[np.ndarray]()
        for which, ends, when in self._steps():
            first, count, owner, _ = self._groups[which].tolist()
            own, (x0, v0, x1, v1) = members[first : first + count], ends.reshape(count, 4, 3).transpose(1, 2, 0).copy()
            if any_contact_of_few(x0, v0, x1, v1, float(np.ptp(when)) * abs(dt), radius[own]):
                found.append((own, np.stack([x0, v0, x1, v1]), max(owner, 0)))
                times.append(when)
        all_ends, taking_part = np.zeros((len(found), 4, 3, n)), np.zeros((len(found), n), np.bool_)
        for k, (own, ends, _) in enumerate(found):
            all_ends[k][..., own], taking_part[k, own] = ends, True
        owners, all_pairs = np.array([owner for *_, owner in found], np.int64), np.array(pairs, np.int64).reshape(-1, 2)
        return Encounter(all_pairs, hurried, np.array(times).reshape(-1, 2), all_ends, taking_part, owners)

    def _steps(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """The steps in which bodies may touch, in order: the group, positions and velocities, and the times."""
        steps, times, ends = (each.copy_to_host() for each in self.outcome)
        order = sorted(range(self.touching), key=lambda k: (steps[k, 0], times[k, 0]))
        counts = self._groups[:, COUNT]
        return [(g - 1, ends[row : row + counts[g - 1]], times[k]) for k in order for g, row in (steps[k],)]


@inner
def _put(i, k, m, label, with_star, first, members):
    """Let body i be the next member of group k, if there is one."""
    if first[k] >= 0:
        kind = FREE if with_star[k] else 1.0 + label[i]
        members[first[k], 0], members[first[k], 1] = i, kind if m[i] > 0.0 else TEST_BODY
        first[k] += 1


@compute.kernel("cpu")
def _form(pairs, ids, m, label, place, groups, members):
    """Fill in groups from row 1 on, their number in row 0, and members with their kinds, as far as there is room.

    Args:
        pairs, ids: sorted; ``ids`` are the bodies in them.
        label, place: (N,) scratch; ``label`` is 0, 1, 2, …, and is so again.

    Returns:
        The numbers of groups and members.
    """
    size, flagged = np.zeros(ids.size, np.int64), np.zeros(ids.size, np.bool_)
    for k in range(ids.size):
        place[ids[k]] = k
    for i, j in pairs:
        if i == j:
            flagged[place[i]] = True
        elif m[i] > 0.0 and m[j] > 0.0:
            a, b = i, j
            while label[a] != a:
                a = label[a]
            while label[b] != b:
                b = label[b]
            label[max(a, b)] = min(a, b)
        elif m[i] == 0.0:
            size[place[i]] += 1
        if i != j and m[j] == 0.0:
            size[place[j]] += 1
    for i in ids:
        label[i] = label[label[i]]
        if m[i] > 0.0:
            size[place[label[i]]] += 1
            flagged[place[label[i]]] |= flagged[place[i]]
    for i, j in pairs:  # one without mass that is near to some that move with the star does so too
        if m[i] == 0.0 and m[j] > 0.0:
            flagged[place[i]] |= flagged[place[label[j]]]
        elif m[j] == 0.0 and m[i] > 0.0:
            flagged[place[j]] |= flagged[place[label[i]]]
    count, length, near_star, first = 0, 0, 0, np.full(ids.size, -1)
    for massive in (True, False):
        for k in range(ids.size):
            i = ids[k]
            bodies = size[k] if massive else size[k] + 1
            if (m[i] > 0.0) == massive and label[i] == i and (bodies > 1 or flagged[k]):
                first[k], count = length, count + 1
                if count < len(groups):
                    groups[count, START], groups[count, COUNT] = length, bodies
                    groups[count, OWNER], groups[count, MOVES_WITH_STAR] = NO_OWNER if massive else i, flagged[k]
                length += bodies
                near_star += bodies if massive and flagged[k] else 0
    for g in range(1, min(count + 1, len(groups))):  # those that are near the star without others with mass
        if groups[g, COUNT] == 1 and near_star == (groups[g, OWNER] == NO_OWNER):
            groups[g, MOVES_WITH_STAR] = COMET
    groups[0, 0], groups[0, NOTED], groups[0, ENDS], groups[0, FAILED] = count, 0, 0, 0
    if count < len(groups) and length <= len(members):
        for i in ids:
            if m[i] > 0.0:
                _put(i, place[label[i]], m, label, flagged, first, members)
        for i, j in pairs:  # in an owner's group the members are in order, too
            if i != j and m[i] == 0.0:
                _put(j, place[i], m, label, flagged, first, members)
        for i in ids:
            if m[i] == 0.0:
                _put(i, place[i], m, label, flagged, first, members)
        for i, j in pairs:
            if i != j and m[j] == 0.0:
                _put(i, place[j], m, label, flagged, first, members)
    for i in ids:
        label[i] = i
    return count, length
