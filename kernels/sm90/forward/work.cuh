// What a CTA works on next, by its ticket.
#pragma once

#include "kernels/shared/at_row.cuh"
#include "kernels/sm90/forward/config.h"

namespace flashback::sm90::forward {

template <Config config>
__device__ void find_work(const Parameters& p, int ticket, Work& work) {
  common::find_queries(p, config.mask, config.query_rows(), ticket, work);
  if (work.batch < 0) return;
  const shared::Lengths lengths = work.sight.lengths(p.sequences);
  work.keys = shared::key_tiles(work.band, work.row, config.query_rows(), lengths, kKeyRows);
#pragma unroll 1
  for (int group = 0; group < config.groups(); ++group) {
    const int row = work.row + group * kGroupRows;
    const shared::KeyTiles of_group = shared::key_tiles(work.band, row, kGroupRows, lengths, kKeyRows);
    work.seen[group] = {of_group.begin, of_group.end};
    if (row >= lengths.q_rows) work.seen[group] = {work.keys.begin, work.keys.begin};
  }
}

}  // namespace flashback::sm90::forward
