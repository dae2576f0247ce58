// One kernel, to be compiled with its marks and without.
#include "kernels/sm90/backward/kernel.cuh"

namespace flashback::sm90::backward {
extern "C" __global__ __launch_bounds__(kThreads,
                                        1) void marked(const __grid_constant__ Parameters parameters) {
  backward<Config{64, Dtype::kBf16, Mask::kCausal}>(parameters);
}
}  // namespace flashback::sm90::backward
