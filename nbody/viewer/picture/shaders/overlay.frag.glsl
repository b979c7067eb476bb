// Draws an image, its first row on top.

uniform sampler2D u_image;
varying vec2 v_place;

void main() {
    gl_FragColor = texture2D(u_image, vec2(v_place.x, 1.0 - v_place.y));
}
