// What a CTA works on next, by its ticket.
#pragma once

#include "kernels/sm100/forward/config.h"

namespace flashback::sm100::forward {

template <Config config>
__device__ void find_work(const Parameters& p, int ticket, Work& work) {
  common::find_queries(p, config.mask, kQueryRows, ticket, work);
  if (work.batch < 0) return;
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    work.keys[half] = shared::key_tiles(work.band, work.row + half * kHalfRows, kHalfRows,
                                        work.sight.lengths(p.sequences), kKeyRows);
  }
  // Later queries see later keys, if there are such.
  work.begin = work.keys[0].begin;
  work.end = work.keys[1].count() > 0 ? work.keys[1].end : work.keys[0].end;
}

}  // namespace flashback::sm100::forward
