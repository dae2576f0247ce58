// The compiled kernels of head dimension 64.
#include "kernels/common/backward_entries.cuh"
#include "kernels/sm90/backward/kernel.cuh"
#include "kernels/sm90/backward/layout.cuh"

namespace flashback::sm90::backward {

FLASHBACK_SEQUENCE_ENTRIES(sm90)
FLASHBACK_EACH_TYPE(FLASHBACK_ROW_ENTRIES, sm90_d64, 64, Layout)

#define FLASHBACK_INSTANCE(name, ...) \
  FLASHBACK_ENTRY(name, (kThreads, 1), Parameters, backward<Config{__VA_ARGS__}>)
FLASHBACK_EACH_TYPE_AND_MASK(FLASHBACK_INSTANCE, backward_sm90_d64, 64)
// Pairs.
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_dense_pair, 64, Dtype::kBf16, Mask::kDense, 2)
FLASHBACK_INSTANCE(backward_sm90_d64_bf16_causal_pair, 64, Dtype::kBf16, Mask::kCausal, 2)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_dense_pair, 64, Dtype::kF16, Mask::kDense, 2)
FLASHBACK_INSTANCE(backward_sm90_d64_fp16_causal_pair, 64, Dtype::kF16, Mask::kCausal, 2)

}  // namespace flashback::sm90::backward
