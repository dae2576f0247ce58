// The compiled kernels of head dimension 128.
#include "kernels/common/backward_entries.cuh"
#include "kernels/sm90/backward/layout.cuh"
#include "kernels/sm90/backward_wide/kernel.cuh"

namespace flashback::sm90::backward_wide {

FLASHBACK_EACH_TYPE(FLASHBACK_ROW_ENTRIES, sm90_d128, 128, backward::Layout)

#define FLASHBACK_INSTANCE(name, ...) \
  FLASHBACK_ENTRY(name, (kThreads, 1), Parameters, backward<Config{__VA_ARGS__}>)
FLASHBACK_EACH_TYPE_AND_MASK(FLASHBACK_INSTANCE, backward_sm90_d128, 128)

}  // namespace flashback::sm90::backward_wide
