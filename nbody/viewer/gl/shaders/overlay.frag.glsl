// Draws an image, its first row on top.

uniform sampler2D u_image;
uniform float u_paper;         // 1: for a light background
varying vec2 v_place;

void main() {
    vec4 colour = texture2D(u_image, vec2(v_place.x, 1.0 - v_place.y));
    float most = max(max(colour.r, colour.g), colour.b), least = min(min(colour.r, colour.g), colour.b);
    colour.rgb += u_paper * (1.0 - most - least);  // dark becomes light and light dark, hues stay
    gl_FragColor = colour;
}
