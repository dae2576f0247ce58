// As sm90.cu.
#include "kernels/sm100/backward/kernel.cuh"

namespace flashback::sm100::backward {
extern "C" __global__ __launch_bounds__(kThreads,
                                        1) void marked(const __grid_constant__ Parameters parameters) {
  backward<Config{64, Dtype::kBf16, Mask::kCausal, TensorMemory::kSplit, Signal::kWarp}>(parameters);
}
}  // namespace flashback::sm100::backward
