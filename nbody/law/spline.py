"""GADGET's softening: each body is a sphere with the density of the cubic spline kernel (Monaghan & Lattanzio 1985), which
ends at h = 2.8 ε. Beyond h the force is exactly Newton's, and the potential in the centre is -G m/ε (Springel, Yoshida &
White 2001, New Astronomy 6, 79, appendix A; Hernquist & Katz 1989)."""

from nbody.law.pair import Law

SUPPORT = 2.8
"""h/ε."""

H2 = SUPPORT**2


def _build(flat, cube, rsqrt):
    """With s = r/h: f h³ = 32/3 - 192/5 s² + 32 s³ for s < 1/2, 64/3 - 48 s + 192/5 s² - 32/3 s³ - 1/(15 s³) for s < 1, and
    1/s³ beyond; u h = 14/5 - 16/3 s² + 48/5 s⁴ - 32/5 s⁵, 16/5 - 1/(15 s) - 32/3 s² + 16 s³ - 48/5 s⁴ + 32/15 s⁵, and 1/s;
    see :func:`nbody.law.pair.pair_law`."""

    def spline(dx, dy, dz, length2):
        real = type(length2)  # literals of the arguments' type
        r2 = dx * dx + dy * dy
        if not flat:
            r2 = dz * dz + r2
        h2 = length2 * real(H2)
        inverse = rsqrt(h2)  # computed once, like the cube below
        q = r2 * inverse * inverse
        f, u = cube(r2), rsqrt(r2)
        if q < real(1):
            q += real(1e-30)  # so that s is not 0 · infinity
            root = rsqrt(q)
            s = q * root
            if q < real(0.25):
                f = real(32 / 3) + q * (real(32) * s - real(38.4))
                u = real(2.8) + q * (real(-16 / 3) + q * (real(9.6) - real(6.4) * s))
            else:
                f = real(64 / 3) + s * (real(-48) + s * (real(38.4) - real(32 / 3) * s)) - real(1 / 15) * root * root * root
                u = real(3.2) - real(1 / 15) * root
                u += q * (real(-32 / 3) + s * (real(16) + s * (real(-9.6) + real(32 / 15) * s)))
            f *= cube(h2)
            u *= inverse
        return f, u

    return spline


def _build_slopes(flat, cube, rsqrt):
    """With s = r/h: g h⁵ = -384/5 + 96 s for s < 1/2, -48/s + 384/5 - 32 s + 1/(5 s⁵) for s < 1, and -3/s⁵ beyond;
    k h⁷ = 96/s, 48/s³ - 32/s - 1/s⁷, and 15/s⁷; see :func:`nbody.law.pair.pair_slopes`."""

    def slopes(dx, dy, dz, length2):
        real = type(length2)
        r2 = dx * dx + dy * dy
        if not flat:
            r2 = dz * dz + r2
        h2 = length2 * real(H2)
        inverse, inner = rsqrt(h2), cube(h2)
        inverse2 = inverse * inverse
        q = r2 * inverse2
        u, f = rsqrt(r2), cube(r2)
        g = real(-3) * f * u * u
        k = real(-5) * g * u * u
        if q < real(1):
            q += real(1e-12)  # k times the square of the distance is 0 at r = 0, and must not be 0 · infinity
            root = rsqrt(q)
            s = q * root
            if q < real(0.25):
                g = real(96) * s - real(76.8)
                k = real(96) * root
            else:
                root2 = root * root
                root3 = root2 * root
                g = real(76.8) - real(48) * root - real(32) * s + real(0.2) * root3 * root2
                k = real(48) * root3 - real(32) * root - root3 * root2 * root2
            g *= inner * inverse2
            k *= inner * inverse2 * inverse2
        return g, k

    return slopes


SPLINE = Law("spline", _build, needs_length=True, slopes=_build_slopes, support=SUPPORT)
"""GADGET's law."""
