// The colour of a line: it fades with age, ends at the present, and has soft edges.

uniform float u_width;
uniform float u_now;
uniform float u_memory;        // the age at which a line has faded
uniform float u_light;         // a factor of the colour
varying vec4 v_colour;
varying float v_time;
varying float v_across;

void main() {
    float age = (u_now - v_time) / u_memory;
    if (age < 0.0 || age > 1.0) discard;
    float edge = clamp(0.5 * u_width + 0.5 - abs(v_across), 0.0, 1.0);
    float fresh = (1.0 - age) * (1.0 - age);
    gl_FragColor = vec4(u_light * fresh * edge * v_colour.rgb, fresh * edge * v_colour.a);
}
