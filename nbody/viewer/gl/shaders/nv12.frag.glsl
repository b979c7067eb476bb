// Converts a picture to NV12, the layout of video: a row of bytes per row of luma, then half as many rows of chroma, in which
// the two values of 2 x 2 pixels alternate. Four bytes make one pixel here. Colours: BT.709, 16 to 235.

uniform sampler2D u_picture;   // filtered linearly: between four pixels it reads their mean
uniform vec2 u_size;           // of the picture, in pixels

// The colour at a point, counted in pixels from the top left corner.
vec3 picture(float x, float y) {
    return texture2D(u_picture, vec2(x / u_size.x, 1.0 - y / u_size.y)).rgb;
}

float luma(vec3 colour) {
    return dot(colour, vec3(0.2126, 0.7152, 0.0722));
}

vec2 chroma(vec3 colour) {
    return (128.0 + 224.0 * (colour.br - luma(colour)) / vec2(1.8556, 1.5748)) / 255.0;
}

void main() {
    float x = 4.0 * floor(gl_FragCoord.x), row = floor(gl_FragCoord.y);
    if (row < u_size.y) {
        float y = row + 0.5;
        vec4 four = vec4(luma(picture(x + 0.5, y)), luma(picture(x + 1.5, y)),
                         luma(picture(x + 2.5, y)), luma(picture(x + 3.5, y)));
        gl_FragColor = (16.0 + 219.0 * four) / 255.0;
    } else {
        float y = 2.0 * (row - u_size.y) + 1.0;
        gl_FragColor = vec4(chroma(picture(x + 1.0, y)), chroma(picture(x + 3.0, y)));
    }
}
