"""The picture of one moment, drawn by OpenGL: camera, palette, sprites, glow, tone map, overlays."""
