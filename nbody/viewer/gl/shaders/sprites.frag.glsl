// The profile of a sprite. Compiled with DISCS, or CLOUDS (splines of two pixels), or neither.

varying vec4 v_peak;
varying vec2 v_width;

// The weights of a pixel's row and column in a B-spline. Those of all its pixels have the sum 1 wherever the particle is, so
// that its light is exact, and there is no exponential to compute.
vec2 spline(vec2 distance) {
#ifdef CLOUDS
    return max(1.0 - distance, 0.0);
#else
    vec2 outside = max(1.5 - distance, 0.0);
    return mix(0.75 - distance * distance, 0.5 * outside * outside, step(0.5, distance));
#endif
}

void main() {
    vec2 r = (2.0 * gl_PointCoord - 1.0) * v_width.x;
#ifdef DISCS
    gl_FragColor = v_peak * clamp(v_width.y + 0.5 - length(r), 0.0, 1.0);
#else
    float profile;
    if (v_width.y < 0.0) {
        vec2 weights = spline(abs(r));
        profile = weights.x * weights.y;
    } else {
        profile = exp(-0.5 * dot(r, r));
    }
    gl_FragColor = v_peak * profile;
#endif
}
