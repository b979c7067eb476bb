/* Hand-written plain all-pairs gravity in AVX-512, the yardstick of the cpu engine: float32, 3-D, Plummer softening.

   Every pair is computed twice (once from each side). A vector holds 16 acting bodies j; four bodies i are in flight per
   pass, so that one load of x, y, z, m serves four rows and the latency of the reciprocal root is hidden. The root is
   the 14-bit estimate q with one Newton step folded into the cube (relative error 7.5 e² < 3e-8 for e = 2^-14):

       1/r³ = q³ (5/2 - 3/2 r² q²) + O(e²) = 3/2 q³ (5/3 - r² q²)

   where the 3/2 rides in G. Arrays are padded to a multiple of 16 by the caller, with massless bodies. */

#include <immintrin.h>

enum { LANES = 16, ROWS = 4 };

typedef struct {
    __m512 x, y, z;
} vector;

static inline __m512 broadcast(float value) { return _mm512_set1_ps(value); }

static inline void attract(vector *sum, const vector *position_i, __m512 x, __m512 y, __m512 z, __m512 m, __m512 length2)
{
    const __m512 dx = _mm512_sub_ps(x, position_i->x);
    const __m512 dy = _mm512_sub_ps(y, position_i->y);
    const __m512 dz = _mm512_sub_ps(z, position_i->z);
    const __m512 r2 = _mm512_fmadd_ps(dz, dz, _mm512_fmadd_ps(dy, dy, _mm512_fmadd_ps(dx, dx, length2)));
    const __m512 q = _mm512_rsqrt14_ps(r2);
    const __m512 q2 = _mm512_mul_ps(q, q);
    const __m512 newton = _mm512_fnmadd_ps(r2, q2, broadcast(5.0f / 3.0f));
    const __m512 f = _mm512_mul_ps(_mm512_mul_ps(_mm512_mul_ps(m, q), q2), newton);
    sum->x = _mm512_fmadd_ps(f, dx, sum->x);
    sum->y = _mm512_fmadd_ps(f, dy, sum->y);
    sum->z = _mm512_fmadd_ps(f, dz, sum->z);
}

/* acceleration[3 i + c] = G sum_j m_j d / (d² + length²)^(3/2) for i < count; x, y, z, m hold padded bodies. */
void accelerations(long count, long padded, const float *x, const float *y, const float *z, const float *m, float G,
                   float length, float *acceleration, int threads)
{
    const __m512 length2 = broadcast(length * length);
    const float scale = 1.5f * G;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (long i = 0; i < count; i += ROWS) {
        vector position_i[ROWS], sum[ROWS];
        for (int row = 0; row < ROWS; row++) {
            const long body = i + row < count ? i + row : i; /* the last rows of a ragged pass repeat its first */
            position_i[row] = (vector){broadcast(x[body]), broadcast(y[body]), broadcast(z[body])};
            sum[row] = (vector){_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        }
        for (long j = 0; j < padded; j += LANES) {
            const __m512 xj = _mm512_load_ps(x + j), yj = _mm512_load_ps(y + j), zj = _mm512_load_ps(z + j);
            const __m512 mj = _mm512_load_ps(m + j);
            for (int row = 0; row < ROWS; row++) attract(&sum[row], &position_i[row], xj, yj, zj, mj, length2);
        }
        for (int row = 0; row < ROWS && i + row < count; row++) {
            acceleration[3 * (i + row)] = scale * _mm512_reduce_add_ps(sum[row].x);
            acceleration[3 * (i + row) + 1] = scale * _mm512_reduce_add_ps(sum[row].y);
            acceleration[3 * (i + row) + 2] = scale * _mm512_reduce_add_ps(sum[row].z);
        }
    }
}
