// The lines of Winograd's transforms with the points 0, 1, -1, 2, -2 (OUT 4) or the first three (OUT 2): SIDE inputs of
// a tile to SIDE positions, SIDE positions to OUT outputs. Source: A. Lavin, S. Gray, arXiv:1509.09308.
#define SIDE (OUT + 2)

#if OUT == 2
void input_line(inout float d[4]) {
  float a = d[0] - d[2], b = d[1] + d[2], c = d[2] - d[1], e = d[1] - d[3];
  d[0] = a; d[1] = b; d[2] = c; d[3] = e;
}
void output_line(float m[4], out float y[2]) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
}
#else
void input_line(inout float d[6]) {
  float a = d[4] - 4.0 * d[2], b = d[3] - 4.0 * d[1], c = d[4] - d[2], e = 2.0 * (d[3] - d[1]);
  d[0] = 4.0 * d[0] - 5.0 * d[2] + d[4];
  d[5] = 4.0 * d[1] - 5.0 * d[3] + d[5];
  d[1] = a + b; d[2] = a - b; d[3] = c + e; d[4] = c - e;
}
void output_line(float m[6], out float y[4]) {
  float s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
  y[0] = m[0] + s1 + s2;
  y[1] = d1 + 2.0 * d2;
  y[2] = s1 + 4.0 * s2;
  y[3] = d1 + 8.0 * d2 + m[5];
}
#endif
