// A textured rectangle of the picture.

uniform vec4 u_rectangle;      // left, bottom, right, top in clip space
attribute vec2 a_corner;       // 0 or 1
varying vec2 v_place;          // texture coordinate

void main() {
    v_place = a_corner;
    gl_Position = vec4(mix(u_rectangle.xy, u_rectangle.zw, a_corner), 0.0, 1.0);
}
