// Maps light to screen colours: brightness on a logarithmic scale, hue unchanged. A core a thousand times brighter than an
// arm keeps its colour, and the arm stays visible.

uniform sampler2D u_light;
uniform sampler2D u_glow;
uniform float u_share;         // share of the light that goes into the glow
uniform float u_range;         // the light of a texture value of 1
uniform float u_dark;          // light where the logarithm begins to bend
uniform float u_white;         // light that is drawn bright
varying vec2 v_place;

void main() {
    // A half float that overflowed is infinite, and infinity divided by infinity is NaN.
    vec3 light = min(texture2D(u_light, v_place).rgb, vec3(6e4));
    light = mix(light, texture2D(u_glow, v_place).rgb, u_share) * u_range;
    float most = max(max(light.r, light.g), max(light.b, 1e-9));
    float bright = log(1.0 + most / u_dark) / log(1.0 + u_white / u_dark);
    bright /= pow(1.0 + bright * bright * bright * bright, 0.25);  // a shoulder: values above white remain distinct

    vec3 hue = pow(light / most, vec3(1.0 / 2.2));
    // The brightest parts lose some saturation, as in a photograph, but never become white.
    hue = mix(hue, vec3(1.0), 0.45 * smoothstep(0.55, 1.0, bright));
    // A very dark blue instead of black, so that the picture's edge is visible on a black page.
    vec3 sky = vec3(0.016, 0.020, 0.034);
    gl_FragColor = vec4(sky + (1.0 - sky) * hue * bright, 1.0);
}
