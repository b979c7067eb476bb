// Turns a particle into a point sprite: a round spot of light, or a disc.
// Compiled with some of: STILL (one frame, not two), VALUES (colours from a_value, else from the speed),
// SIZES (a size and a light per body), DISCS (few bodies: discs of one brightness).

uniform mat4 u_view;           // space to the camera's axes
uniform mat4 u_projection;     // the camera's axes to clip space
uniform float u_pixels;        // pixels per unit of length where w = 1
uniform float u_sigma;         // width of the Gaussian, in units of length
uniform vec2 u_sigma_limits;   // its least and greatest width, in pixels
uniform float u_flux;          // light of a particle seen at one pixel per unit of length
uniform float u_peak;          // light of a disc
uniform float u_radius;        // radius of a disc in pixels
uniform vec3 u_scale;          // values at the ends of the palette; 1 if it is logarithmic, else 0
uniform sampler2D u_palette;
uniform float u_spline;        // 1: draw the narrowest spots by a spline instead of a Gaussian

attribute vec3 a_position;     // of the first frame
attribute vec3 a_velocity;
#ifdef VALUES
attribute float a_value;
#endif
#ifdef SIZES
attribute vec2 a_size;         // a factor of the width, and a factor of the light
#endif

#ifndef STILL
uniform float u_fraction;         // time since the first frame, as a fraction of u_interval
uniform float u_interval;      // time between the two frames
attribute vec3 a_next_position; // of the second frame
attribute vec3 a_next_velocity;
#ifdef VALUES
attribute float a_next_value;
#endif
#endif

varying vec4 v_peak;           // light at the middle of the sprite; alpha: the same without a colour
varying vec2 v_width;          // half the sprite: in sigmas, or in pixels if there is no Gaussian; and the disc's radius in
                               // pixels, 0 for a Gaussian, -1 for a spline

#ifdef STILL
vec3 position() { return a_position; }
vec3 velocity() { return a_velocity; }
#else
// The cubic Hermite polynomial through the positions and velocities of both frames, with limited tangents. (The same as
// nbody/viewer/sources/frames.py, which explains the limit.)
vec3 position() {
    float s = u_fraction;
    vec3 chord = a_next_position - a_position;
    vec3 first = u_interval * a_velocity, second = u_interval * a_next_velocity;
    float moved = length(chord);
    float mismatch = length(chord - 0.5 * (first + second));
    float most = moved * mix(12.0, 3.0, smoothstep(0.5, 1.0, mismatch / max(moved, 1e-37)));
    first *= min(1.0, most / max(length(first), 1e-37));
    second *= min(1.0, most / max(length(second), 1e-37));
    vec3 bend = (1.0 - s) * (1.0 - s) * s * first - s * s * (1.0 - s) * second;
    return a_position + s * s * (3.0 - 2.0 * s) * chord + bend;
}
vec3 velocity() { return mix(a_velocity, a_next_velocity, u_fraction); }
#endif

float value() {
#ifndef VALUES
    return length(velocity());
#else
#ifdef STILL
    return a_value;
#else
    return mix(a_value, a_next_value, u_fraction);
#endif
#endif
}

vec4 colour() {
    float low = u_scale.x, high = u_scale.y, place = 0.5;
    if (high > low) {
        float inside = clamp(value(), low, high);
        place = u_scale.z > 0.5 ? log(inside / low) / log(high / low) : (inside - low) / (high - low);
    }
    return vec4(texture2D(u_palette, vec2(place, 0.5)).rgb, 1.0);
}

void main() {
    gl_Position = u_projection * (u_view * vec4(position(), 1.0));
    float pixels = u_pixels / gl_Position.w;
#ifdef SIZES
    vec2 size = a_size;
#else
    vec2 size = vec2(1.0);
#endif

#ifdef DISCS
    float radius = max(size.x * u_radius, 2.0 * u_sigma_limits.x);
    gl_PointSize = ceil(2.0 * radius + 2.0);
    v_width = vec2(0.5 * gl_PointSize, radius);
    v_peak = u_peak * colour();
#else
    // A Gaussian narrower than about half a pixel can fall between pixels, and moving particles would flicker.
    float sigma = clamp(size.x * u_sigma * pixels, u_sigma_limits.x, u_sigma_limits.y);
    // The light of a particle falls with the square of its distance, whatever the width of its sprite. So the surface
    // brightness of an object does not depend on zoom, and clamping the width does not change it either.
    float flux = size.y * u_flux * pixels * pixels;
    if (u_spline > 0.5 && sigma <= u_sigma_limits.x) {
#ifdef CLOUDS
        gl_PointSize = 2.0;
#else
        gl_PointSize = 3.0;
#endif
        v_width = vec2(0.5 * gl_PointSize, -1.0);
        v_peak = flux * colour();
    } else {
        gl_PointSize = ceil(6.0 * sigma);  // three sigmas on each side, in whole pixels
        v_width = vec2(0.5 * gl_PointSize / sigma, 0.0);
        v_peak = flux / (6.2831853 * sigma * sigma) * colour();
    }
#endif
}
