// The small kernels around the main one.
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
FLASHBACK_INSTANCE(preprocess_sm100_d64_bf16, kThreads, PreprocessParameters, preprocess<Dtype::kBf16>)
FLASHBACK_INSTANCE(preprocess_sm100_d64_fp16, kThreads, PreprocessParameters, preprocess<Dtype::kF16>)
FLASHBACK_INSTANCE(postprocess_sm100_d64_bf16, kThreads, PostprocessParameters, postprocess<Dtype::kBf16>)
FLASHBACK_INSTANCE(postprocess_sm100_d64_fp16, kThreads, PostprocessParameters, postprocess<Dtype::kF16>)

}  // namespace flashback::common
