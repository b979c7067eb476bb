// Light to colours of the screen. Its amount goes through a logarithm, its hue stays: a core a thousand times brighter
// than an arm is still a core of some colour, and the arm is still seen.

uniform sampler2D u_light;
uniform sampler2D u_glow;
uniform float u_share;         // of the glow
uniform float u_range;         // what a texture value of 1 stands for
uniform float u_dark;          // light where the logarithm begins to bend
uniform float u_white;         // light that is drawn bright
varying vec2 v_place;

void main() {
    // An overflowing half float is infinite, and infinity over infinity is no colour.
    vec3 light = min(texture2D(u_light, v_place).rgb, vec3(6e4));
    light = mix(light, texture2D(u_glow, v_place).rgb, u_share) * u_range;
    float most = max(max(light.r, light.g), max(light.b, 1e-9));
    float bright = log(1.0 + most / u_dark) / log(1.0 + u_white / u_dark);
    bright /= pow(1.0 + bright * bright * bright * bright, 0.25);  // a shoulder: what is over white still differs

    vec3 hue = pow(light / most, vec3(1.0 / 2.2));
    // What is brightest pales a little, as in a photograph, and never to white.
    hue = mix(hue, vec3(1.0), 0.45 * smoothstep(0.55, 1.0, bright));
    // A night sky rather than black, so that the edge of the picture is seen on a black page.
    vec3 sky = vec3(0.016, 0.020, 0.034);
    gl_FragColor = vec4(sky + (1.0 - sky) * hue * bright, 1.0);
}
