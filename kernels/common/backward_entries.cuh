// The small kernels around a main one of the backward pass, as entries.
#pragma once

#include "kernels/common/postprocess.cuh"
#include "kernels/common/preprocess.cuh"
#include "kernels/common/schedule.cuh"
#include "kernels/common/sink.cuh"
#include "kernels/shared/entry.cuh"

// Once for an architecture.
#define FLASHBACK_SEQUENCE_ENTRIES(name)                                                             \
  FLASHBACK_ENTRY(schedule_##name, (::flashback::common::kScheduleThreads),                          \
                  ::flashback::common::ScheduleParameters, ::flashback::common::schedule)            \
  FLASHBACK_ENTRY(sink_##name, (::flashback::common::kThreads), ::flashback::common::SinkParameters, \
                  ::flashback::common::sum_sink)

// Of a head dimension, whose rows lie in a layout: FLASHBACK_EACH_TYPE gives the type. Postprocess is held to
// the registers with which six CTAs fit a multiprocessor: with five it is slower than memory.
#define FLASHBACK_ROW_ENTRIES(name, ...)                                                                   \
  FLASHBACK_ENTRY(preprocess_##name, (::flashback::common::kThreads),                                      \
                  ::flashback::common::PreprocessParameters, ::flashback::common::preprocess<__VA_ARGS__>) \
  FLASHBACK_ENTRY(postprocess_##name, (::flashback::common::kThreads, 6),                                  \
                  ::flashback::common::PostprocessParameters, ::flashback::common::postprocess<__VA_ARGS__>)
