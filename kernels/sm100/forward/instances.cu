// The compiled kernels.
#include "kernels/common/schedule.cuh"
#include "kernels/common/unseen.cuh"
#include "kernels/shared/entry.cuh"
#include "kernels/sm100/forward/kernel.cuh"

namespace flashback::sm100::forward {

FLASHBACK_ENTRY(schedule_sm100, (common::kScheduleThreads), common::ScheduleParameters, common::schedule)
FLASHBACK_ENTRY(unseen_sm100, (common::kThreads), common::UnseenParameters, common::unseen)

#define FLASHBACK_INSTANCE(name, ...) \
  FLASHBACK_ENTRY(name, (kThreads, 1), Parameters, forward<Config{__VA_ARGS__}>)
FLASHBACK_EACH_TYPE_AND_MASK(FLASHBACK_INSTANCE, forward_sm100_d64, 64)
FLASHBACK_EACH_TYPE_AND_MASK(FLASHBACK_INSTANCE, forward_sm100_d128, 128)

}  // namespace flashback::sm100::forward
