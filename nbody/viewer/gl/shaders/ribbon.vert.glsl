// A straight piece of a line, drawn as a rectangle of constant width on the screen.

uniform mat4 u_view;           // space to the camera's axes
uniform mat4 u_projection;     // the camera's axes to clip space
uniform vec2 u_size;           // of the picture, in pixels
uniform float u_width;         // in pixels

attribute vec3 a_from;
attribute vec3 a_to;
attribute vec4 a_from_colour;
attribute vec4 a_to_colour;
attribute vec2 a_time;         // at both ends
attribute vec2 a_corner;       // along the line, 0 or 1; across it, -1 or 1

varying vec4 v_colour;
varying float v_time;
varying float v_across;        // distance from the middle of the line, in pixels

void main() {
    mat4 matrix = u_projection * u_view;
    vec4 from = matrix * vec4(a_from, 1.0), to = matrix * vec4(a_to, 1.0);
    v_colour = mix(a_from_colour, a_to_colour, a_corner.x);
    v_time = mix(a_time.x, a_time.y, a_corner.x);
    if (from.w <= 0.0 || to.w <= 0.0) {  // behind the camera
        gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
        v_across = 0.0;
        return;
    }
    vec2 along = (to.xy / to.w - from.xy / from.w) * u_size;
    along = length(along) > 1e-6 ? normalize(along) : vec2(1.0, 0.0);
    v_across = a_corner.y * (0.5 * u_width + 1.0);
    vec4 here = a_corner.x < 0.5 ? from : to;
    here.xy += 2.0 * v_across * vec2(-along.y, along.x) / u_size * here.w;
    gl_Position = here;
}
