// How `flashback emulate` tells the libraries in the program what to be. All are optional.
#pragma once

namespace flashback::emulator::cuda {

inline constexpr const char* kGpuVariable = "FLASHBACK_EMULATE_GPU";  // b200 (default) or h200
inline constexpr const char* kScheduleVariable =
    "FLASHBACK_EMULATE_SCHEDULE";                                             // eager (default), lazy, random
inline constexpr const char* kSeedVariable = "FLASHBACK_EMULATE_SEED";        // of the random schedule
inline constexpr const char* kThreadsVariable = "FLASHBACK_EMULATE_THREADS";  // host threads; 0: all cores
inline constexpr const char* kCheckVariable = "FLASHBACK_EMULATE_CHECK";  // errors or strict; else unchecked
inline constexpr const char* kFindingsVariable = "FLASHBACK_EMULATE_FINDINGS";  // a file; else stderr

}  // namespace flashback::emulator::cuda
