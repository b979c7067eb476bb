// Light that fades: the brighter one of this picture's light and the faded light of the pictures before.

uniform sampler2D u_light;
uniform sampler2D u_before;
uniform float u_fade;
varying vec2 v_place;

void main() {
    gl_FragColor = max(min(texture2D(u_light, v_place), vec4(6e4)), u_fade * texture2D(u_before, v_place));
}
