// The compiled kernels, by variants.
#include "kernels/shared/entry.cuh"
#include "kernels/sm100/backward/kernel.cuh"

namespace flashback::sm100::backward {

using enum TensorMemory;
using enum Signal;

#define FLASHBACK_INSTANCE(name, ...) \
  FLASHBACK_ENTRY(name, (kThreads, 1), Parameters, backward<Config{__VA_ARGS__}>)
#define FLASHBACK_SIGNALS(name, ...)                \
  FLASHBACK_INSTANCE(name##_cta, __VA_ARGS__, kCta) \
  FLASHBACK_INSTANCE(name##_warp, __VA_ARGS__, kWarp)
#define FLASHBACK_ALIASED(name, ...) FLASHBACK_SIGNALS(name##_aliased, __VA_ARGS__, kAliased)
#define FLASHBACK_VARIANTS(name, ...)  \
  FLASHBACK_ALIASED(name, __VA_ARGS__) \
  FLASHBACK_SIGNALS(name##_split, __VA_ARGS__, kSplit)

FLASHBACK_EACH_TYPE_AND_MASK(FLASHBACK_VARIANTS, backward_sm100_d64, 64)
FLASHBACK_EACH_TYPE_AND_MASK(FLASHBACK_ALIASED, backward_sm100_d128, 128)

}  // namespace flashback::sm100::backward
