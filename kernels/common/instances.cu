// The small kernels around the main one of sm_100a.
#include "kernels/common/backward_entries.cuh"
#include "kernels/common/layout.cuh"

namespace flashback::common {

FLASHBACK_SEQUENCE_ENTRIES(sm100)
FLASHBACK_EACH_TYPE(FLASHBACK_ROW_ENTRIES, sm100_d64, 64, PlainLayout)
FLASHBACK_EACH_TYPE(FLASHBACK_ROW_ENTRIES, sm100_d128, 128, PlainLayout)

}  // namespace flashback::common
