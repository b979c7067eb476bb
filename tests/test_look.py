"""The look of a picture: what colours, sizes, trails, marks and backgrounds say is true of the bodies."""

import numpy as np
import pytest

from nbody.cli import main
from nbody.diagnostics.structure import local_density
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.viewer.display.hud import legend_panel
from nbody.viewer.gl.lines import bar_length, round_length
from nbody.viewer.picture.coloring import Coloring
from nbody.viewer.picture.look import BACKGROUNDS, COLOURS, MAPS, SIZES, Look
from nbody.viewer.picture.quantities import grid_density, potential
from nbody.viewer.picture.styles import ember
from nbody.viewer.screenshot import draw_frame
from nbody.viewer.sources.frames import FAR
from nbody.viewer.sources.samples import LINEAR, LOGARITHMIC, ends

SIZE = (400, 300)


def drawn(source, at=0, hud=False, **look):
    """A picture as int."""
    return draw_frame(source, at, SIZE, hud, Look(**look)).astype(int)


def pixel(source, point):
    """Column and row of a point of a plane."""
    x, y = source.home().project(np.array([[*point, 0.0]]), SIZE)[0]
    return int(x), int(y)


def hue(picture, source, point):
    """The hue of a body's disc: RGB divided by its largest part."""
    x, y = pixel(source, point)
    colour = picture[y, x].astype(float)
    return colour / colour.max()


# --- Colours --------------------------------------------------------------------------------------------------------

LEFT, RIGHT = np.array([-1.0, 0.0]), np.array([1.0, 0.0])


def two_groups():
    """Four bodies near :data:`LEFT` are slow, light, far apart, and of the first species; those near :data:`RIGHT` fast,
    heavy, close together, and of the second. Each group's first body is at its point and accelerates with its speed."""
    offset = np.array([[0, 0], [0.3, 0.5], [-0.3, 0.5], [0.1, -0.5]])
    position = np.concatenate([LEFT + offset, RIGHT + offset / 4])
    speed = np.repeat([1.0, 50.0], 4)[:, None]
    velocity = speed * [0.0, 1e-3]
    return [(position, (1 + k) * velocity) for k in range(3)], np.repeat([1.0, 30.0], 4), np.repeat([0, 1], 4)


@pytest.mark.parametrize("color", [name for name in COLOURS if name not in ("energy-error", "relative-speed")])
@pytest.mark.parametrize("at", [0, 0.5])
def test_colours_follow_the_quantity(egl, recorded, color, at):
    frames, mass, species = two_groups()
    source = recorded(*frames, mass=mass, species=species, species_names=("a", "b"))
    picture = drawn(source, at, color=color, map="reef", sizes="equal", trails="none")
    left, right = (hue(picture, source, point) for point in (LEFT, RIGHT))
    low, high = Coloring(source, color, "reef", True).legend().colours(8)[[0, -1]] ** (1 / 2.2)
    assert np.abs(left - low / low.max()).max() < np.abs(left - high / high.max()).max(), (left, right)
    assert np.abs(right - high / high.max()).max() < np.abs(right - low / low.max()).max(), (left, right)


def test_the_energy_error_of_the_frame_colours_all_bodies(egl, recorded):
    frames, mass, _ = two_groups()
    source = recorded(*frames, mass=mass)
    pictures = [drawn(source, k, color="energy-error", map="reef", sizes="equal", trails="none") for k in (1, 2)]
    first, second = ([hue(picture, source, point) for point in (LEFT, RIGHT)] for picture in pictures)
    np.testing.assert_allclose(first[0], first[1], atol=0.02)
    assert np.abs(first[0] - second[0]).max() > 0.2


def test_the_relative_speed_is_that_of_bodies_without_their_common_motion(recorded):
    """The heavy group moves by 0.05 along y; the light one then recedes from the centre of mass 30 times as fast."""
    frames, mass, _ = two_groups()
    at_rest, moving = (
        Coloring(source, "relative-speed", "ember", True).values(source.past(0))[1] * source.speed_unit
        for source in (
            recorded(*frames, mass=mass),
            recorded(*((x, np.add(v, [3.0, 4.0])) for x, v in frames), mass=mass),
        )
    )
    np.testing.assert_allclose(moving, at_rest, atol=1e-5)
    np.testing.assert_allclose(at_rest, np.repeat([30 * 0.049 / 31, 0.049 / 31], 4), rtol=1e-5)


def test_a_legend_names_the_species_the_unit_and_the_kind_of_scale(recorded):
    frames, mass, species = two_groups()
    source = recorded(*frames, mass=mass, species=species, species_names=("disk", "halo"))
    legends = {color: Coloring(source, color, "ember", True).legend() for color in COLOURS}
    assert legends["species"].names == ("disk", "halo") and not legends["speed"].names
    assert legends["mass"].low == 1 and legends["mass"].high == 30
    assert legends["speed"].scale == LOGARITHMIC
    assert legends["id"].scale == LINEAR
    panels = {color: legend_panel(legend, 1.0, "dark") for color, legend in legends.items()}
    assert all(panel.dtype == np.uint8 and panel.shape[2] == 4 for panel in panels.values())


def test_a_body_at_rest_gets_no_invented_scale(recorded):
    rest = recorded((np.eye(3), np.zeros((3, 3))))
    legend = Coloring(rest, "speed", "ember", True).legend()
    assert legend.low == legend.high == 0
    unknown = Coloring(rest, "acceleration", "ember", True).legend()  # of one frame
    assert np.isnan(unknown.high) and not np.array_equal(
        legend_panel(unknown, 1.0, "dark"), legend_panel(legend, 1.0, "dark")
    )
    panel = legend_panel(legend, 1.0, "dark").astype(int)
    assert np.ptp(panel[..., :3], axis=2).max() < 30  # there is no map: all pixels are nearly grey


def test_the_ends_of_a_scale_are_percentiles_and_zeros_do_not_count():
    values = np.concatenate([np.zeros(500), np.geomspace(1, 1e3, 1001), [np.nan, np.inf]])
    assert ends(values, LOGARITHMIC) == pytest.approx((1e3**0.05, 1e3**0.98), rel=1e-3)
    assert ends(values, LINEAR) == (0, 1e3)


def test_a_window_does_not_wait_and_gets_the_same_values(recorded):
    frames, mass, _ = two_groups()
    source = recorded(*frames, mass=mass)
    exact = Coloring(source, "density", "ember", True).values(source.past(1))
    quick = Coloring(source, "density", "ember", False)
    quick.values(source.past(1))
    quick._thread.shutdown(wait=True)
    number, values = quick.values(source.past(1))
    assert number == exact[0] == 1
    np.testing.assert_array_equal(values, exact[1])


def test_the_density_of_cells_agrees_with_that_of_neighbours():
    """Cells are chosen because they have many bodies, so that they exceed the mean by about 1/√16; neighbours scatter."""
    rng = np.random.default_rng(3)
    radius = 1 / np.sqrt(rng.uniform(0.05, 0.95, 20_000) ** (-2 / 3) - 1)
    direction = rng.standard_normal((20_000, 3))
    position = radius[:, None] * direction / np.linalg.norm(direction, axis=1)[:, None]
    mass = np.full(20_000, 1 / 20_000)
    ratio = grid_density(position, mass) / local_density(Particles(mass, position, 0 * position))
    for inner, outer in ((0.3, 0.6), (0.6, 1.2), (1.2, 2.0)):
        assert 0.6 < np.median(ratio[(radius > inner) & (radius < outer)]) < 1.7


def test_the_potential_of_many_bodies_is_that_of_a_tree(recorded, monkeypatch):
    """Within the tree's accuracy; a body that is not drawn has no potential, and does not spoil the tree."""
    x, v = np.random.default_rng(1).standard_normal((2, 600, 3))
    source = recorded((x, v), resolved={"gravity": {"G": 2.0, "softening": "plummer", "length": 0.1}})
    frame = source.past(0)
    frame.position[7] = FAR
    right = potential(source, frame)
    monkeypatch.setattr("nbody.viewer.picture.quantities.DIRECT_UP_TO", 100)
    found = Coloring(source, "potential", "ember", True).values(frame)[1]
    assert found[7] == right[7] == 0
    rest = np.arange(600) != 7
    np.testing.assert_allclose(found[rest], right[rest], rtol=2e-3)
    assert np.abs(found[rest] / right[rest] - 1).max() > 1e-12, "that is another sum"


# --- Sizes, trails, marks -------------------------------------------------------------------------------------------


def lit(picture, threshold=100):
    return picture.max(axis=2) > threshold


def area(picture, source, point):
    """Bright pixels around a point."""
    x, y = pixel(source, point)
    return lit(picture, 140)[y - 9 : y + 10, x - 9 : x + 10].sum()


def test_a_star_is_larger_than_its_planet(egl, recorded):
    source = recorded((np.stack([LEFT, RIGHT]), np.ones((2, 2))), mass=[1.0, 1e-3])
    by_mass = drawn(source)
    equal = drawn(source, sizes="equal")
    assert area(by_mass, source, LEFT) > 2 * area(by_mass, source, RIGHT) > 0
    assert area(equal, source, LEFT) == pytest.approx(area(equal, source, RIGHT), abs=6)


def test_flux_is_light_in_proportion_to_the_mass(egl, recorded):
    rng = np.random.default_rng(1)
    position = np.concatenate([rng.normal(LEFT, 0.2, (1000, 2)), rng.normal(RIGHT, 0.2, (1000, 2))])
    source = recorded((position, np.ones_like(position)), mass=np.repeat([1.0, 20.0], 1000))
    for sizes, brighter in (("equal", False), ("flux", True)):
        picture = drawn(source, sizes=sizes).max(axis=2)
        left, right = picture[:, :200].mean(), picture[:, 200:].mean()
        assert (right > 1.3 * left) == brighter, (sizes, left, right)


def on_a_line():
    """Three bodies; the last one moves from left to right, 1 per frame."""
    return [(np.array([[-2.0, 1.5], [2, 1.5], [k - 2.0, 0]]), np.array([[0, 0], [0, 0], [10.0, 0]])) for k in range(5)]


def test_a_trail_is_behind_a_body_and_ends_at_it(egl, recorded):
    source = recorded(*on_a_line())
    changed = lit(np.abs(drawn(source, 2.5) - drawn(source, 2.5, trails="none")), 10)
    begin, body = pixel(source, (-2, 0)), pixel(source, (0.5, 0))
    rows, columns = np.nonzero(changed)
    assert abs(np.median(rows) - body[1]) <= 1 and abs(columns.min() - begin[0]) < 20
    assert columns.max() < body[0] + 12
    assert changed[body[1], begin[0] + 30 : body[0] - 10].all()  # without a gap


def test_trails_of_chosen_bodies_and_of_so_many_frames(egl, recorded):
    source = recorded(*on_a_line())
    none = drawn(source, 4, trails="none")
    assert np.array_equal(drawn(source, 4, trails="0,1"), none)  # they do not move
    short = lit(np.abs(drawn(source, 4, trails="2", trail_frames=2) - none), 6)
    assert pixel(source, (0, 0))[0] - 3 < np.nonzero(short)[1].min() < pixel(source, (1, 0))[0]


def test_no_trail_is_drawn_where_a_body_has_turned_between_two_frames(egl, recorded):
    """Its speed is ten times that of a straight way from frame to frame: between them it was elsewhere."""
    source = recorded(*((position, 10 * velocity) for position, velocity in on_a_line()))
    assert np.array_equal(drawn(source, 4, trails="2"), drawn(source, 4, trails="none"))


def test_a_trail_of_a_body_that_is_not_there_is_an_error(egl, recorded):
    with pytest.raises(InputError, match="--trails 1,7: there is no body with the id 7"):
        drawn(recorded(*on_a_line()), trails="1,7")


def test_trails_of_very_many_bodies_are_those_of_some_in_every_part_of_the_file(egl, recorded):
    """2000 bodies in four groups of the file's order, each in a corner: trails are drawn in every corner."""
    corner = np.repeat([[-1.0, -1], [-1, 1], [1, -1], [1, 1]], 500, axis=0)
    source = recorded(*[(corner + 0.1 * k, np.ones_like(corner)) for k in range(5)])
    changed = np.abs(drawn(source, 4, trails="all") - drawn(source, 4, trails="none")).max(axis=2) > 5
    for sign in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        x, y = pixel(source, np.array(sign) + 0.2)
        assert changed[y - 9 : y + 10, x - 9 : x + 10].any(), sign


def test_trails_of_the_first_picture_are_as_bright_as_later_ones(egl, recorded):
    """Near a dense cluster, the automatic exposure's white is far above that of the whole view."""
    from nbody.viewer.gl.studio import Studio

    rng = np.random.default_rng(3)
    position = np.concatenate([0.02 * rng.standard_normal((2000, 2)), 5 * rng.standard_normal((2000, 2))])
    position[0] = -0.2, 0.1
    step = np.zeros_like(position)
    step[0, 0] = 0.1
    source = recorded(*[(position + k * step, 10 * step) for k in range(5)])
    camera = source.home()
    camera.radius, pictures = 0.25, []
    with Studio(source, SIZE, Look(trails="0")) as studio:
        for _ in range(10):
            studio.draw(4, camera, False)
            pictures.append(studio.read().astype(int))
    x, y = camera.project(np.array([[0.0, 0.1, 0.0]]), SIZE)[0].astype(int)
    first, *_, last = (picture[y - 2 : y + 3, x - 20 : x + 20].max(axis=(0, 2)).mean() for picture in pictures)
    assert first == pytest.approx(last, rel=0.1)  # the trails change the levels a little


def test_the_former_trails_of_light_are_lines_and_a_hint(egl, recorded, tmp_path, capsys):
    recorded(*on_a_line())
    pictures = []
    for trails in ("light", "all"):
        shot = ["view", str(tmp_path / "0.h5"), "--screenshot", str(tmp_path / f"{trails}.png"), "--size", "64x48"]
        assert main([*shot, "--trails", trails]) == 0
        pictures.append((tmp_path / f"{trails}.png").read_bytes())
        assert ("--trails all" in capsys.readouterr().err) is (trails == "light")
    assert pictures[0] == pictures[1]


def test_arrows_point_along_the_velocities(egl, recorded):
    position = np.array([LEFT, RIGHT])
    source = recorded((position, np.array([[0.0, 1], [0, -1]])))
    changed = lit(np.abs(drawn(source, vectors=True) - drawn(source)), 40)
    for point, up in ((LEFT, True), (RIGHT, False)):
        x, y = pixel(source, point)
        above, below = changed[y - 16 : y - 5, x - 3 : x + 4].any(), changed[y + 6 : y + 17, x - 3 : x + 4].any()
        assert (above, below) == (up, not up)


def test_the_scale_bar_has_a_round_length_and_is_as_long_as_it_says(egl, recorded):
    source = recorded((3 * np.stack([LEFT, RIGHT]), np.ones((2, 2))))
    length, pixels = bar_length(source.home(), SIZE, 1.0)
    rows, columns = np.nonzero(lit(np.abs(drawn(source, scale_bar=True) - drawn(source)), 60))
    assert np.bincount(rows).max() == np.ptp(columns) + 1 == pytest.approx(pixels, abs=1)
    (x0, _), (x1, _) = source.home().project(np.array([[0, 0, 0], [length, 0, 0]]), SIZE)
    assert x1 - x0 == pytest.approx(pixels)
    for most, expected in ((0.99, 0.5), (1.0, 1), (4.9, 2), (5e7, 5e7), (1.99e-3, 1e-3)):
        assert round_length(most) == pytest.approx(expected)


def test_axes_begin_at_the_origin(egl, recorded):
    source = recorded((np.array([[-1.0, -1], [1, 1]]), np.ones((2, 2))))
    changed = lit(np.abs(drawn(source, axes=True) - drawn(source)), 60)
    x, y = pixel(source, (0, 0))
    assert changed[y, x + 2 : x + 40].all() and changed[y - 40 : y - 2, x].all()
    assert not changed[y + 12 :, : x - 12].any()


# --- Backgrounds and light ------------------------------------------------------------------------------------------


def test_paper_is_white_and_bodies_are_darker_where_there_are_more(egl, recorded):
    rng = np.random.default_rng(2)
    position = rng.standard_normal((5000, 2))
    source = recorded((position, position))
    sky, page, paper = (drawn(source, background=name) for name in ("dark", "light", "print"))
    assert (paper[:5, :5] == 255).all() and 220 < page[:5, :5].min() < 255 and sky[:5, :5].max() < 20
    x, y = pixel(source, (0, 0))
    middle, ring = paper[y - 20 : y + 20, x - 20 : x + 20].mean(), paper[y - 20 : y + 20, x + 80 : x + 110].mean()
    assert middle < ring - 30 < 225
    assert sky[y - 20 : y + 20, x - 20 : x + 20].mean() > sky[y - 20 : y + 20, x + 80 : x + 110].mean() + 30


def test_a_bright_core_keeps_all_its_light(egl, recorded):
    """Σ light = (R pixels)² times the colour's sum. In half floats most of the light of this core would be lost."""
    from nbody.viewer.gl.studio import Studio

    count, rng = 20_000, np.random.default_rng(1)
    position = np.concatenate([rng.normal(0, 0.005, (4 * count // 5, 2)), rng.uniform(-1, 1, (count // 5, 2))])
    source = recorded((position, np.ones_like(position)))
    with Studio(source, SIZE) as studio:
        studio.draw(0, with_hud=False)
        camera, light = studio.renderer.home, studio.renderer.sprites.read().sum()
    share = light / (camera.radius * camera.pixels_per_length(SIZE)) ** 2
    assert share == pytest.approx(ember(3)[1].sum(), rel=0.03)


def test_exposure_brightens_without_changing_hues(egl, recorded):
    position = np.random.default_rng(2).standard_normal((5000, 2))
    source = recorded((position, np.ones_like(position)))
    plain, bright, dark = (drawn(source, exposure=stops).astype(float).mean(axis=(0, 1)) for stops in (0.0, 3.0, -3.0))
    assert bright.sum() > 1.3 * plain.sum() > 1.3 * 1.3 * dark.sum()
    assert plain.argmax() == bright.argmax() == dark.argmax()


@pytest.fixture
def streaming(recorded):
    """A cluster with a stream, a line of one percent of the bodies at x = 2, and where the stream is in a picture."""
    rng, count = np.random.default_rng(7), 40_000
    position = 0.1 * rng.standard_normal((count, 2))
    position[: count // 100] = np.stack([np.full(count // 100, 2.0), rng.uniform(-1.5, 1.5, count // 100)], axis=1)
    source = recorded((position, np.ones_like(position)))
    camera = source.home()
    camera.radius = 2.5
    x = int(camera.project(np.array([[2.0, 0.0, 0.0]]), SIZE)[0, 0])

    def brightness(**look):
        """Of the stream, above the sky's, of white."""
        picture = draw_frame(source, 0, SIZE, False, Look(**look), camera).astype(int)
        return np.median(picture[80:-80, x - 1 : x + 2].max(axis=(1, 2)) - picture[2, 2].max()) / 255

    brightness.source, brightness.camera = source, camera
    return brightness


def test_automatic_exposure_shows_a_stream_of_one_percent_of_the_light(egl, streaming):
    assert streaming(auto_exposure=False) < 0.1
    assert streaming() > 0.2  # the tone map's SEEN at the upper end of the faintest half percent


def test_contours_reach_as_far_as_automatic_exposure_shows(egl, streaming):
    def lines(**look):
        pictures = [
            draw_frame(streaming.source, 0, SIZE, False, Look(contours=on, **look), streaming.camera).astype(int)
            for on in (False, True)
        ]
        return (np.abs(pictures[1] - pictures[0]).max(axis=2) > 25).sum()

    assert lines() > 1.3 * lines(auto_exposure=False) > 100


def test_automatic_exposure_adapts_slowly_and_arrives(egl):
    from nbody.viewer.gl.tonemap import CONTRAST, ToneMap

    rng = np.random.default_rng(8)
    bright = rng.lognormal(size=(5000, 3)).astype(np.float32)
    faint, tonemap, look = np.concatenate([bright, 1e-4 * bright]), ToneMap(), Look()
    tonemap.white = 5.0
    tonemap.measure(bright)
    seen = [tonemap.levels(look)]
    assert tonemap.settled
    while len(seen) < 2 or not tonemap.settled:
        tonemap.measure(faint)
        seen.append(tonemap.levels(look))
    other = ToneMap()
    other.white = 5.0
    other.measure(faint)
    np.testing.assert_allclose(seen[-1], other.levels(look), rtol=0.03)  # SETTLED is 0.02
    way = np.diff(np.log([contrast for _, contrast in seen]))
    assert (way >= 0).all() and way.max() <= 0.3 * way.sum() / 0.97 and len(seen) < 30  # no leaps
    assert tonemap.levels(Look(auto_exposure=False)) == (5.0, CONTRAST)


def test_smooth_light_has_less_noise_where_there_are_few_bodies_and_a_sharp_core(egl, recorded):
    rng = np.random.default_rng(9)
    position = np.concatenate([rng.uniform(-1, 1, (60_000, 2)), 0.004 * rng.standard_normal((20_000, 2))])
    source = recorded((position, np.ones_like(position)))
    x, y = pixel(source, (0.0, 0.0))
    plain, smooth = (drawn(source, smooth=smooth, auto_exposure=False).max(axis=2) for smooth in (False, True))
    noise = [picture[y - 100 : y - 30, x - 60 : x + 60].std() for picture in (plain, smooth)]
    assert noise[1] < 0.25 * noise[0]
    assert abs(plain[y, x] - smooth[y, x]) < 10


def test_contours_ring_no_single_bodies(egl, recorded):
    x = np.random.default_rng(3).standard_normal((3000, 2))
    angle = 2 * np.pi * np.arange(12) / 12
    x[:12] = 4.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    source = recorded((x, np.ones_like(x)))
    changed = np.abs(drawn(source, contours=True) - drawn(source)).max(axis=2) > 25
    assert changed.sum() > 100
    places = [(column, row) for column, row in (pixel(source, point) for point in x[:12]) if 12 <= row < SIZE[1] - 12]
    assert len(places) >= 4
    for column, row in places:
        assert not changed[row - 12 : row + 12, column - 12 : column + 12].any()


def test_contours_are_circles_around_a_round_cloud(egl, recorded):
    position = np.random.default_rng(4).standard_normal((200_000, 2))
    source = recorded((position, np.ones_like(position)))
    changed = np.abs(drawn(source, contours=True) - drawn(source)).max(axis=2) > 25
    rows, columns = np.nonzero(changed)
    x, y = pixel(source, np.median(position, axis=0))
    radius = np.hypot(columns - x, rows - y)
    inner = radius[radius < 100]
    assert len(inner) > 200
    # The density falls by CONTOUR_RATIO from one circle to the next: r² grows by 2 ln 4 σ².
    sigma = source.home().pixels_per_length(SIZE)
    step = (inner**2 / (2 * np.log(4) * sigma**2)) % 1.0
    spread = np.abs(np.exp(2j * np.pi * step).mean())
    assert spread > 0.7, spread


def test_every_choice_can_be_drawn(egl, recorded):
    frames, mass, _ = two_groups()
    source = recorded(*frames, mass=mass)
    for field, names in (("map", MAPS), ("sizes", SIZES), ("background", BACKGROUNDS)):
        pictures = [drawn(source, 1, hud=True, axes=True, scale_bar=True, **{field: name}) for name in names]
        for k, picture in enumerate(pictures[1:]):
            if names[list(names)[k]] and field != "sizes":
                assert not np.array_equal(picture, pictures[k])


def test_the_command_takes_a_look(egl, recorded, tmp_path, capsys):
    frames, mass, _ = two_groups()
    path, png = recorded(*frames, mass=mass).run.path, tmp_path / "out.png"
    options = ["--color", "mass", "--background", "print", "--scale-bar", "--trails", "0,3", "--no-hud"]
    assert main(["view", path, "--screenshot", str(png), *options]) == 0
    from PIL import Image

    assert np.asarray(Image.open(png))[-1, -1].tolist() == [255, 255, 255]
