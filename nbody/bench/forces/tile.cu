// The lecture's second kernel (Nyland, Harris & Prins 2007) in CUDA C, as a competitor: float32, Plummer softening.
extern "C" __global__ void forces(const float4* body, float4* acceleration, int n, float G, float length2) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 body_i = body[min(i, n - 1)];
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += 256) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        #pragma unroll 32
        for (int s = 0; s < 256; s++) {
            float dx = tile[s].x - body_i.x, dy = tile[s].y - body_i.y, dz = tile[s].z - body_i.z;
            float u = rsqrtf(dx * dx + dy * dy + dz * dz + length2), f = tile[s].w * u * u * u;
            ax += f * dx; ay += f * dy; az += f * dz;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float4(G * ax, G * ay, G * az, 0);
}
