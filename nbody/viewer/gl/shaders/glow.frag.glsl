// Shrinks a texture to a quarter of its width and height (u_step = 0), or blurs the small one with a Gaussian along one axis.

uniform sampler2D u_light;
uniform vec2 u_step;           // the distance between two taps
uniform vec2 u_pixel;          // one pixel of u_light
uniform float u_shrink;        // 1: shrink; 0: blur
varying vec2 v_place;

const float MOST = 6e4;        // a half float that overflowed is infinite, and would spread as NaN

vec4 tap(vec2 place) { return min(texture2D(u_light, place), vec4(MOST)); }

void main() {
    if (u_shrink > 0.5) {
        // A tap between four pixels reads their mean: four taps read all sixteen.
        gl_FragColor = 0.25 * (tap(v_place - u_pixel) + tap(v_place + u_pixel)
            + tap(v_place + vec2(u_pixel.x, -u_pixel.y)) + tap(v_place + vec2(-u_pixel.x, u_pixel.y)));
    } else {
        // exp(-i^2 / 2 sigma^2) for sigma = 1.25 and i = -4 to 4; a tap between two pixels reads both in the right proportion.
        vec2 near = 1.277 * u_step, far = 3.096 * u_step;
        gl_FragColor = 0.3192 * tap(v_place) + 0.3206 * (tap(v_place - near) + tap(v_place + near))
            + 0.0198 * (tap(v_place - far) + tap(v_place + far));
    }
}
