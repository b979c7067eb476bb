// Blurs a texture with a Gaussian along one axis.

uniform sampler2D u_light;
uniform vec2 u_step;           // two pixels along the axis; a tap between two pixels reads the mean of both
varying vec2 v_place;

void main() {
    vec3 sum = vec3(0.0);
    float weights = 0.0;
    for (int i = -6; i <= 6; i++) {
        float weight = exp(-0.08 * float(i * i));
        sum += weight * min(texture2D(u_light, v_place + float(i) * u_step).rgb, vec3(6e4));
        weights += weight;
    }
    gl_FragColor = vec4(sum / weights, 1.0);
}
