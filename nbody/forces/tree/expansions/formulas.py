"""Cartesian expansions of the potential to any order, written by a program: one list of indices gives every operator.

With n = (n_x, n_y, n_z), x^n = x^n_x y^n_y z^n_z, n! = n_x! n_y! n_z!, and G = 1:

    M_n = Σ_j m_j (x_j - c)^n / n!                     moments of the bodies of a cell about its centre of mass c
    T_n(d) = ∂^n (-1/√(d² + ε²))                       tensors
    L_k = Σ_n M_n T_{n+k}(d),    |n| + |k| ≤ p         local expansion about b, of a cell at d = c - b           (M2L)
    φ(x) = Σ_k L_k (b - x)^k / k!,   a = -∇φ           potential and acceleration at x                           (L2P)
    φ(x) = Σ_n M_n T_n(c - x),       a_i = Σ_n M_n T_{n+i}                                                       (M2P)

M2M and L2L move the centres. The dipole moments are zero and left out. For ε = 0 in three dimensions φ is harmonic: every
T_n with n_z ≥ 2 is a sum of others, so that moments are kept for n_z < 2 only ("folded": (p + 1)² instead of
(p + 1)(p + 2)(p + 3)/6), and likewise L. With softening, and in two dimensions (where 1/r is not harmonic), tensors are
complete. The tensors come from a recursion (McMurchie & Davidson 1978, J. Comput. Phys. 26, 218), here in the unit vector
e = d q, q = 1/√(d² + ε²), so that no power of q beyond the p + 1 of T_n itself occurs and float32 does not overflow:

    S⁰_m = -(-1)^m (2m - 1)!! q^(m+1),    Sⁿ⁺ⁱ_m = e_i Sⁿ_{m+1} + n_i q Sⁿ⁻ⁱ_{m+1},    T_n = Sⁿ_0

Orders and errors: Warren & Salmon 1995; Dehnen 2002, 2014 (Comput. Astrophys. Cosmol. 1, 1).
"""

from functools import cache
from math import prod
from typing import Any, NamedTuple

from nbody.forces.tree.expansions.text import AXES, Index, Term, Text, factorials, indices, minus, name, plus


class Basis(NamedTuple):
    """What an expansion is made of.

    Attributes:
        order: p, 2 to 8. The error of an acceleration falls like (size/distance)^p.
        dimensions: 2 or 3.
        softened: the potential is that of ``plummer`` with ε > 0.
        potential: L_0 is computed too; without it only accelerations are.
    """

    order: int
    dimensions: int = 3
    softened: bool = False
    potential: bool = False

    @property
    def folded(self) -> bool:
        """True if indices with n_z ≥ 2 are left out."""
        return self.dimensions == 3 and not self.softened

    @property
    def highest_z(self) -> int:
        """The highest n_z that is kept."""
        return 0 if self.dimensions == 2 else 1 if self.folded else self.order

    @property
    def all_z(self) -> int:
        """The highest n_z of all indices."""
        return 0 if self.dimensions == 2 else self.order

    @property
    def moments(self) -> list[Index]:
        """The indices of the kept moments, M_0 first; |n| = 1 is left out."""
        return [n for n in indices(0, self.order, self.highest_z) if sum(n) != 1]

    @property
    def locals(self) -> list[Index]:
        """The indices of the kept L_k; the first is L_0 with ``potential``, else L_100."""
        return indices(0 if self.potential else 1, self.order, self.highest_z)

    def expand(self, n: Index) -> dict[Index, int]:
        """T_n as a sum of the kept ones: their indices and coefficients."""
        return expanded(n) if self.folded else {n: 1}


@cache
def expanded(n: Index) -> dict[Index, int]:
    """A harmonic T_n as a sum of those with n_z < 2, from T_zz = -T_xx - T_yy."""
    if n[2] < 2:
        return {n: 1}
    found: dict[Index, int] = {}
    for axis in (0, 1):
        lower = plus(minus(n, (0, 0, 2)), plus(AXES[axis], AXES[axis]))
        for each, coefficient in expanded(lower).items():
            found[each] = found.get(each, 0) - coefficient
    return {each: coefficient for each, coefficient in found.items() if coefficient}


# --- The text of each operator. Each takes and assigns variables named after their indices: M…, L…, and a vector. ---


def fold(text: Text, basis: Basis, raw: str, result: str) -> None:
    """Assign the kept moments ``result`` from all moments ``raw`` (|n| ≠ 1)."""
    terms: dict[Index, list[Term]] = {n: [] for n in basis.moments}
    for n in indices(0, basis.order, basis.all_z):
        if sum(n) != 1:
            for kept, coefficient in basis.expand(n).items():
                terms[kept].append((coefficient, (name(raw, n),)))
    for n, found in terms.items():
        text.let(name(result, n), found)


def p2m_text(text: Text, basis: Basis) -> None:
    """Moments M of one body of mass ``m`` at (dx, dy, dz) from the centre."""
    text.powers("x", ("dx", "dy", "dz"), basis.order, basis.all_z)
    text.let("w000", [(1, ("m",))])
    for n in indices(2, basis.order, basis.all_z):
        text.let(name("w", n), [(1, ("m", name("x", n)))])
    fold(text, basis, "w", "M")


def m2m_text(text: Text, basis: Basis) -> None:
    """Moments N about another centre from the moments M; (dx, dy, dz) is the centre of M minus that of N."""
    text.powers("x", ("dx", "dy", "dz"), basis.order, basis.all_z)
    text.let("w000", [(1, ("M000",))])
    for n in indices(2, basis.order, basis.all_z):
        terms: list[Term] = []
        for k in basis.moments:
            rest = minus(n, k)
            if min(rest) >= 0:
                terms.append((1, (name("M", k), name("x", rest)) if any(rest) else (name("M", k),)))
        text.let(name("w", n), terms)
    fold(text, basis, "w", "N")


class Tensors:
    """The tensors T_n at (dx, dy, dz), each assigned when it is first needed. ``length2`` is ε²; it is ignored if the
    basis is not softened."""

    def __init__(self, text: Text, basis: Basis) -> None:
        self.text, self.basis = text, basis
        self.made: dict[tuple[Any, ...], str] = {}
        flat = basis.dimensions == 2
        squares: list[Term] = [(1, ("dx", "dx")), (1, ("dy", "dy"))]
        squares += [] if flat else [(1, ("dz", "dz"))]
        text.let("r2", squares, "length2" if basis.softened else "")
        text.lines.append("q = rsqrt(r2)")
        for axis, each in enumerate("xy" if flat else "xyz"):
            self.made["e", axis] = text.let("e" + each, [(1, ("d" + each, "q"))])

    def __call__(self, n: Index, m: int = 0) -> str:
        """The variable that holds Sⁿ_m; T_n for m = 0."""
        if (n, m) in self.made:
            return self.made[n, m]
        variable = name("T" if m == 0 else f"S{m}_", n)
        if not any(n):
            terms: list[Term] = [(prod(range(1, 2 * m, 2)) * (-1) ** (m + 1), (self.power(m + 1),))]
        elif m == 0 and self.basis.folded and n[2] >= 2:
            terms = [(coefficient, (self(each),)) for each, coefficient in expanded(n).items()]
        else:
            axis = next((i for i in (2, 1, 0) if n[i] == 1), max(range(3), key=lambda i: n[i]))
            lower = minus(n, AXES[axis])
            terms = [(1, (self.made["e", axis], self(lower, m + 1)))]
            if lower[axis]:
                terms.append((1, (self.multiple(lower[axis]), self(minus(lower, AXES[axis]), m + 1))))
        self.made[n, m] = self.text.let(variable, terms)
        return variable

    def power(self, exponent: int) -> str:
        """The variable that holds a power of q."""
        if exponent == 1:
            return "q"
        key = "power", exponent
        if key not in self.made:
            half = exponent // 2
            self.made[key] = self.text.let(f"q{exponent}", [(1, (self.power(half), self.power(exponent - half)))])
        return self.made[key]

    def multiple(self, factor: int) -> str:
        """The variable that holds a multiple of q."""
        if factor == 1:
            return "q"
        key = "multiple", factor
        if key not in self.made:
            self.made[key] = self.text.let(f"q_by_{factor}", [(factor, ("q",))])
        return self.made[key]


def m2l_text(text: Text, basis: Basis, wanted: list[Index] | None = None) -> None:
    """Add the moments M of a cell at (dx, dy, dz) from the centre of L to L; only to those ``wanted``, if given."""
    tensor = Tensors(text, basis)
    for k in wanted or basis.locals:
        terms: list[Term] = []
        for n in basis.moments:
            if sum(n) + sum(k) <= basis.order:
                terms.append((1, (name("M", n), tensor(plus(n, k)))))
        text.let(name("L", k), terms, name("L", k))


def fill(text: Text, basis: Basis) -> None:
    """Assign the L_k that are not kept."""
    for k in indices(1, basis.order, basis.all_z):
        if k[2] > basis.highest_z:
            text.let(name("L", k), [(coefficient, (name("L", each),)) for each, coefficient in expanded(k).items()])


def shifted(basis: Basis, k: Index, least: int = 0) -> list[Term]:
    """The terms of Σ_n L_{k+n} x^n/n!."""
    found: list[Term] = []
    for n in indices(least, basis.order - sum(k), basis.all_z):
        found.append((1, (name("L", plus(k, n)), name("x", n)) if any(n) else (name("L", k),)))
    return found


def l2l_text(text: Text, basis: Basis) -> None:
    """Local expansion K about another centre from L; (dx, dy, dz) is the centre of L minus that of K."""
    text.powers("x", ("dx", "dy", "dz"), basis.order, basis.all_z)
    fill(text, basis)
    for k in basis.locals:
        text.let(name("K", k), shifted(basis, k))


def l2p_text(text: Text, basis: Basis) -> None:
    """Add the acceleration and potential of L at a body to ax, ay, az, phi; (dx, dy, dz) is the centre minus the body."""
    text.powers("x", ("dx", "dy", "dz"), basis.order, basis.all_z)
    fill(text, basis)
    for axis, each in zip(AXES[: basis.dimensions], ("ax", "ay", "az"), strict=False):
        text.let(each, shifted(basis, axis), each)
    if basis.potential:
        text.let("phi", shifted(basis, (0, 0, 0)), "phi")


def m2p_text(text: Text, basis: Basis, degree: int) -> None:
    """Add the acceleration (and potential) of the moments M up to ``degree`` at (dx, dy, dz) from a body to ax, ay, az
    (and phi). Degree 2 is the quadrupole; p - 1 is the accuracy of M2L for a target of no size."""
    tensor = Tensors(text, basis)
    used = [n for n in basis.moments if sum(n) <= degree]
    for axis, each in zip(AXES[: basis.dimensions], ("ax", "ay", "az"), strict=False):
        text.let(each, [(1, (name("M", n), tensor(plus(n, axis)))) for n in used], each)
    if basis.potential:
        text.let("phi", [(1, (name("M", n), tensor(n))) for n in used], "phi")


def norms_text(text: Text, basis: Basis) -> None:
    """Squares of the norms P_n of the trace-free moments, ``P2`` to ``Pp``: P_n = m |x|^n for one body (Dehnen 2014)."""
    folded = Basis(basis.order)
    if basis.dimensions == 3 and basis.softened:
        fold(text, folded, "M", "F")
    else:
        text.lines += [f"{name('F', n)} = {name('M', n)}" for n in basis.moments]
    for degree in range(2, basis.order + 1):
        kept = indices(degree, degree, min(1, basis.all_z))
        terms: list[Term] = []
        for place, a in enumerate(kept):
            for b in kept[place:]:
                weight = harmonic(a).get(b, 0) * factorials(b) * (1 if a == b else 2)
                terms.append((weight, (name("F", a), name("F", b))))
        text.let(f"P{degree}", terms)


@cache
def harmonic(n: Index) -> dict[Index, int]:
    """The polynomial (-1)^|n| |y|^(2|n|+1) ∂^n (1/|y|): its monomials and their coefficients."""
    if not any(n):
        return {(0, 0, 0): 1}
    axis = next(i for i in range(3) if n[i])
    lower = minus(n, AXES[axis])
    found: dict[Index, int] = {}
    for monomial, coefficient in harmonic(lower).items():
        up = plus(monomial, AXES[axis])
        found[up] = found.get(up, 0) + (2 * sum(lower) + 1) * coefficient
        if monomial[axis]:
            for square in AXES:
                each = plus(minus(monomial, AXES[axis]), plus(square, square))
                found[each] = found.get(each, 0) - monomial[axis] * coefficient
    return {monomial: coefficient for monomial, coefficient in found.items() if coefficient}
