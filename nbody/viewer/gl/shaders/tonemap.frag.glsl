// Maps light to screen colours: brightness on a logarithmic scale, hue unchanged. A core a thousand times brighter than an
// arm keeps its colour, and the arm stays visible. Compiled with some of PAPER (a light background), CONTOURS, SMOOTH (where a
// pixel has few bodies, its light is that around it).

uniform sampler2D u_light;
uniform sampler2D u_glow;
uniform vec2 u_fraction;          // fractions of the light and of the glow in the picture; their sum is 1
uniform float u_range;         // the light of a texture value of 1
uniform float u_dark;          // light where the logarithm begins to bend
uniform float u_bright;        // 1 / log(1 + light that is drawn bright / u_dark)
uniform vec3 u_sky;            // the background
#ifdef SMOOTH
uniform float u_pixel_of_one;  // the light of one body in one pixel
#endif
#ifdef CONTOURS
uniform vec3 u_ink;
uniform float u_step;          // the logarithm of the ratio of two contours
uniform float u_least;         // the light of the least one
#endif
varying vec2 v_place;

void main() {
    // Light that overflowed is infinite, and infinity divided by infinity is NaN.
    vec4 glow = texture2D(u_glow, v_place);
    vec4 sharp = min(texture2D(u_light, v_place), vec4(1e30));
    vec3 light = u_fraction.x * sharp.rgb + u_fraction.y * glow.rgb;
#ifdef SMOOTH
    // The noise of n bodies is 1/sqrt(n): that of a pixel with less than 16 is more than a quarter.
    light = mix(glow.rgb, light, smoothstep(1.0, 16.0, sharp.a * u_range / u_pixel_of_one));
#endif
    light *= u_range;
    float most = max(max(light.r, light.g), max(light.b, 1e-9));
    float bright = log(1.0 + most / u_dark) * u_bright;
    float square = bright * bright;
    bright *= inversesqrt(sqrt(1.0 + square * square));  // a shoulder: values above white remain distinct

    vec3 hue = sqrt(light / most);  // nearly the screen's curve
#ifdef PAPER
    // Light becomes ink: a little gives a pale tint, more the full hue, most a dark shade of it.
    vec3 ink = hue * (0.94 - 0.4 * square * square / (1.0 + square * square));
    vec3 picture = mix(u_sky, ink * ink, min(1.15 * bright, 1.0));
#else
    // The brightest parts lose some saturation, as in a photograph, but never become white.
    hue = mix(hue, vec3(1.0), 0.45 * smoothstep(0.55, 1.0, bright));
    vec3 picture = u_sky + (1.0 - u_sky) * hue * bright;
#endif
#ifdef CONTOURS
    float level = log(max(glow.a * u_range, 1e-9)) / u_step;
    float distance = abs(fract(level + 0.5) - 0.5) / max(fwidth(level), 1e-4);
    float line = clamp(1.2 - distance, 0.0, 1.0) * step(log(u_least) / u_step, floor(level + 0.5)) * step(fwidth(level), 0.7);
    picture = mix(picture, u_ink, 0.75 * line);
#endif
    gl_FragColor = vec4(picture, 1.0);
}
