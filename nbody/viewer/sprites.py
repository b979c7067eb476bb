"""Particles as points of light: additive sprites into a floating-point picture, then a logarithmic tone map.

A crowded core is ten thousand times as bright as an arm of the same picture. Added up in 8 bits the core burns out to
white and takes its colours with it; added up in 16-bit floats and mapped by a logarithm, both are seen. The total flux
is shared out among the particles, so a million of them are as bright as a thousand, and a sprite that would be smaller
than a pixel is drawn as a pixel with the same flux.
"""

import numpy as np
from vispy import gloo

PARTICLE_VERTEX = """
attribute vec3 a_position;
attribute float a_speed;           // 0 slow, 1 fast
uniform mat4 u_matrix;
uniform float u_size;              // diameter of a sprite at the camera's centre, in pixels
uniform float u_centre_w;          // the clip-space w there: 1 without perspective
uniform float u_flux;              // what one particle adds to the picture, summed over its pixels
varying vec3 v_light;

vec3 star_colour(float t) {        // as stars are: slow and cool red, fast and hot blue
    vec3 cool = vec3(1.00, 0.34, 0.12);
    vec3 warm = vec3(1.00, 0.78, 0.42);
    vec3 white = vec3(0.92, 0.93, 1.00);
    vec3 hot = vec3(0.32, 0.52, 1.00);
    if (t < 0.33) return mix(cool, warm, t / 0.33);
    if (t < 0.66) return mix(warm, white, (t - 0.33) / 0.33);
    return mix(white, hot, (t - 0.66) / 0.34);
}

void main() {
    gl_Position = u_matrix * vec4(a_position, 1.0);
    float wanted = u_size * u_centre_w / max(gl_Position.w, 1e-6);
    float size = clamp(wanted, 4.0, 96.0);
    gl_PointSize = size;
    // The sprite's profile integrates to 0.0586 size^2 (see below). What is very near does not blind.
    v_light = star_colour(a_speed) * u_flux / (0.0586 * size * size) * min(1.0, 96.0 / wanted);
}
"""

PARTICLE_FRAGMENT = """
varying vec3 v_light;
void main() {
    vec2 r = 2.0 * gl_PointCoord - 1.0;
    float d2 = dot(r, r);
    if (d2 > 1.0) discard;
    // A sharp core in a faint halo. The integral over the disc is pi/4 size^2 (1/18 + 0.06 (1 - e^-3)/3).
    gl_FragColor = vec4(v_light * (exp(-18.0 * d2) + 0.06 * exp(-3.0 * d2)), 1.0);
}
"""

SCREEN_VERTEX = """
attribute vec2 a_corner;
varying vec2 v_at;
void main() { v_at = 0.5 * a_corner + 0.5; gl_Position = vec4(a_corner, 0.0, 1.0); }
"""

TONE_FRAGMENT = """
uniform sampler2D u_light;
uniform float u_white;             // the brightness that becomes white
varying vec2 v_at;
void main() {
    vec3 light = max(texture2D(u_light, v_at).rgb, 0.0);
    float brightness = max(max(light.r, light.g), light.b);
    float shown = log(1.0 + brightness) / log(1.0 + u_white);
    vec3 colour = light / max(brightness, 1e-6);
    // Only what is brighter than white may lose its colour.
    colour = mix(colour, vec3(1.0), clamp(shown - 0.9, 0.0, 0.5));
    vec3 night = vec3(0.012, 0.014, 0.022);
    gl_FragColor = vec4(night + colour * min(shown, 1.0), 1.0);
}
"""

FLUX_PER_PIXEL = 1.2
"""Mean brightness of the picture if all particles are in it; the eye's choice."""

WHITE = 50.0
"""The brightness that becomes white; the eye's choice."""


class Sprites:
    """Draws particles into the current framebuffer; :meth:`load` says which, :meth:`draw` how they are seen."""

    def __init__(self) -> None:
        self._particles = gloo.Program(PARTICLE_VERTEX, PARTICLE_FRAGMENT)
        self._tone = gloo.Program(SCREEN_VERTEX, TONE_FRAGMENT)
        self._tone["a_corner"] = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], np.float32)
        self._tone["u_white"] = WHITE
        self._position, self._speed = gloo.VertexBuffer(), gloo.VertexBuffer()
        self._light: gloo.Texture2D | None = None
        self._target: gloo.FrameBuffer | None = None
        self._shape = (0, 0)
        self.count = 0

    def load(self, position: np.ndarray, speed: np.ndarray) -> None:
        """Show these bodies: position (N, 2 or 3); speed (N,) in [0, 1]."""
        points = np.zeros((len(position), 3), np.float32)
        points[:, : position.shape[1]] = position
        self._position.set_data(points, copy=False)
        self._speed.set_data(np.ascontiguousarray(speed, np.float32), copy=False)
        self._particles["a_position"], self._particles["a_speed"] = self._position, self._speed
        self.count = len(points)

    def draw(self, matrix: np.ndarray, centre_w: float, size: tuple[int, int]) -> None:
        """The picture, ``size`` = (width, height) pixels, as ``matrix`` sees it."""
        width, height = size
        self._resize(width, height)
        self._particles["u_matrix"] = matrix.astype(np.float32)
        self._particles["u_centre_w"] = centre_w
        self._particles["u_size"] = max(4.0, min(width, height) / 72)
        self._particles["u_flux"] = FLUX_PER_PIXEL * width * height / max(1, self.count)
        with self._target:
            gloo.set_viewport(0, 0, width, height)
            gloo.set_state(depth_test=False, blend=True, blend_func=("one", "one"), cull_face=False)
            gloo.clear(color=(0, 0, 0, 0))
            if self.count:
                self._particles.draw("points")
        gloo.set_viewport(0, 0, width, height)
        gloo.set_state(depth_test=False, blend=False)
        self._tone.draw("triangle_strip")

    def _resize(self, width: int, height: int) -> None:
        if self._shape != (height, width):
            self._shape = (height, width)
            self._light = gloo.Texture2D(
                (height, width, 4), format="rgba", internalformat="rgba16f", interpolation="nearest"
            )
            self._target = gloo.FrameBuffer(color=self._light)
            self._tone["u_light"] = self._light
