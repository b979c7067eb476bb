// The profile of a sprite: exp(-r^2 / 2 sigma^2).

varying vec3 v_peak;
varying float v_half_width;

void main() {
    vec2 r = (2.0 * gl_PointCoord - 1.0) * v_half_width;
    gl_FragColor = vec4(v_peak * exp(-0.5 * dot(r, r)), 1.0);
}
