// Clusters, by launch attribute and as compiled: each CTA reads its neighbour's shared memory.
#include "check.h"

__device__ void wait_for_cluster() {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}

__device__ void exchange(int* out) {
  __shared__ int own;
  if (threadIdx.x == 0) own = static_cast<int>(100 + blockIdx.x);
  wait_for_cluster();
  const unsigned next = (__clusterRelativeBlockRank() + 1) % __clusterSizeInBlocks();
  if (threadIdx.x == 0) out[blockIdx.x] = *static_cast<int*>(__cluster_map_shared_rank(&own, next));
  wait_for_cluster();
}

__global__ void by_attribute(int* out) {
  exchange(out);
}

__global__ void __cluster_dims__(2, 1, 1) as_compiled(int* out) {
  exchange(out);
}

cudaError_t launch(int* out, unsigned ctas, unsigned cluster) {
  cudaLaunchConfig_t config = {};
  config.gridDim = ctas;
  config.blockDim = 32;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, by_attribute, out);
}

void print(const char* how, const int* out) {
  std::printf("%s:", how);
  for (int i = 0; i < 8; ++i) std::printf(" %d", out[i]);
  std::printf("\n");
}

int main() {
  int* out;
  MUST(cudaMallocManaged(&out, 16 * sizeof *out));
  MUST(launch(out, 8, 4));
  print("clusters of 4", out);
  as_compiled<<<8, 32>>>(out);
  MUST(cudaDeviceSynchronize());
  print("clusters of 2", out);
  cudaFuncAttributes attributes;
  MUST(cudaFuncGetAttributes(&attributes, as_compiled));
  std::printf("required %d %d %d\n", attributes.requiredClusterWidth, attributes.requiredClusterHeight,
              attributes.requiredClusterDepth);
  SAY(launch(out, 8, 3));
  SAY(launch(out, 16, 16));
  MUST(cudaFuncSetAttribute(by_attribute, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  (void)cudaGetLastError();
  SAY(launch(out, 16, 16));
  std::printf("out[15] %d\n", out[15]);
}
