// Turns a particle into a point sprite: a round spot with a Gaussian profile.

uniform mat4 u_view;           // space to the camera's axes
uniform mat4 u_projection;     // the camera's axes to clip space
uniform float u_pixels;        // pixels per unit of length where w = 1
uniform float u_sigma;         // width of the Gaussian, in units of length
uniform vec2 u_sigma_limits;   // its least and greatest width, in pixels
uniform float u_flux;          // light of a particle seen at one pixel per unit of length
uniform vec2 u_speeds;         // speeds at the ends of the palette
uniform sampler2D u_palette;

uniform float u_share;         // time since the first frame, as a fraction of u_interval
uniform float u_interval;      // time between the two frames

attribute vec3 a_position;     // of the first frame
attribute vec3 a_velocity;
attribute vec3 a_next_position; // of the second frame
attribute vec3 a_next_velocity;

varying vec3 v_peak;           // light at the middle of the sprite
varying float v_half_width;    // of the sprite, in sigmas

// The cubic Hermite polynomial through the positions and velocities of both frames.
vec3 interpolated_position() {
    float s = u_share;
    vec3 chord = a_next_position - a_position;
    vec3 bend = u_interval * ((1.0 - s) * (1.0 - s) * s * a_velocity - s * s * (1.0 - s) * a_next_velocity);
    return a_position + s * s * (3.0 - 2.0 * s) * chord + bend;
}

void main() {
    gl_Position = u_projection * (u_view * vec4(interpolated_position(), 1.0));
    float pixels = u_pixels / gl_Position.w;

    // A Gaussian narrower than about half a pixel can fall between pixels, and moving particles would flicker.
    float sigma = clamp(u_sigma * pixels, u_sigma_limits.x, u_sigma_limits.y);
    // Three sigmas on each side, in whole pixels.
    gl_PointSize = ceil(6.0 * sigma);
    v_half_width = 0.5 * gl_PointSize / sigma;

    // The light of a particle falls with the square of its distance, whatever the width of its sprite. So the surface
    // brightness of an object does not depend on zoom, and clamping the width does not change it either.
    float flux = u_flux * pixels * pixels;
    float speed = clamp(length(mix(a_velocity, a_next_velocity, u_share)), u_speeds.x, u_speeds.y);
    float hue = log(speed / u_speeds.x) / log(u_speeds.y / u_speeds.x);
    v_peak = flux / (6.2831853 * sigma * sigma) * texture2D(u_palette, vec2(hue, 0.5)).rgb;
}
