"""The Milky Way: nucleus and bulge (Hernquist), disc (Miyamoto & Nagai) and halo (NFW), fitted to measured masses and
velocities (Price-Whelan 2017, the first version of ``MilkyWayPotential`` in gala; after Bovy 2015)."""

from nbody.fields.field import Field
from nbody.fields.hernquist import Hernquist
from nbody.fields.miyamoto_nagai import MiyamotoNagai
from nbody.fields.nfw import NFW
from nbody.scenario.fields import Length, Mass


class MilkyWay(Field, validate_default=True):
    """The circular velocity is 231 km/s at 8 kpc. The disc lies in the plane z = 0. The default values have units, so the
    scenario needs units, or must give every value.

    Attributes:
        nucleus_mass, nucleus_a, bulge_mass, bulge_a: of :class:`~nbody.fields.hernquist.Hernquist`.
        disk_mass, disk_a, disk_b: of :class:`~nbody.fields.miyamoto_nagai.MiyamotoNagai`.
        halo_mass, halo_a: of :class:`~nbody.fields.nfw.NFW`.
    """

    nucleus_mass: Mass = "1.71e9 Msun"  # type: ignore[assignment]
    nucleus_a: Length = "0.07 kpc"  # type: ignore[assignment]
    bulge_mass: Mass = "5e9 Msun"  # type: ignore[assignment]
    bulge_a: Length = "1 kpc"  # type: ignore[assignment]
    disk_mass: Mass = "6.8e10 Msun"  # type: ignore[assignment]
    disk_a: Length = "3 kpc"  # type: ignore[assignment]
    disk_b: Length = "0.28 kpc"  # type: ignore[assignment]
    halo_mass: Mass = "5.4e11 Msun"  # type: ignore[assignment]
    halo_a: Length = "15.62 kpc"  # type: ignore[assignment]

    def parts(self) -> list[Field]:
        return [
            Hernquist(mass=self.nucleus_mass, a=self.nucleus_a, centre=self.centre),
            Hernquist(mass=self.bulge_mass, a=self.bulge_a, centre=self.centre),
            MiyamotoNagai(mass=self.disk_mass, a=self.disk_a, b=self.disk_b, centre=self.centre),
            NFW(mass=self.halo_mass, a=self.halo_a, centre=self.centre),
        ]

    def parameters(self, G: float) -> tuple[float, ...]:
        raise NotImplementedError("its parts have parameters")

    def size(self) -> float:
        raise NotImplementedError("its parts have sizes")
