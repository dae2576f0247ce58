// The small kernels around the main one.
#include "kernels/common/layout.cuh"
#include "kernels/common/postprocess.cuh"
#include "kernels/common/preprocess.cuh"
#include "kernels/common/schedule.cuh"
#include "kernels/common/sink.cuh"

namespace flashback::common {

using shared::Dtype;

#define FLASHBACK_INSTANCE(name, threads, Parameters, function) \
  extern "C" __global__ __launch_bounds__(threads) void name(   \
      const __grid_constant__ Parameters parameters) {          \
    function(parameters);                                       \
  }

FLASHBACK_INSTANCE(schedule_sm100, kScheduleThreads, ScheduleParameters, schedule)
FLASHBACK_INSTANCE(sink_sm100, kThreads, SinkParameters, sum_sink)
#define FLASHBACK_INSTANCES(what, ...)                                          \
  FLASHBACK_INSTANCE(preprocess_sm100_##what, kThreads, PreprocessParameters,   \
                     (preprocess<__VA_ARGS__, PlainLayout>))                    \
  FLASHBACK_INSTANCE(postprocess_sm100_##what, kThreads, PostprocessParameters, \
                     (postprocess<__VA_ARGS__, PlainLayout>))

FLASHBACK_INSTANCES(d64_bf16, 64, Dtype::kBf16)
FLASHBACK_INSTANCES(d64_fp16, 64, Dtype::kF16)
FLASHBACK_INSTANCES(d128_bf16, 128, Dtype::kBf16)
FLASHBACK_INSTANCES(d128_fp16, 128, Dtype::kF16)

}  // namespace flashback::common
