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
  int rows = config.query_rows();
  if (config.mask != Mask::kDense && config.groups() > 2) {
    // Tiles of nearly the same size, the smaller ones first: a rest of one warpgroup's rows at the end would
    // see the most keys, with two others idle.
    const int groups = shared::tiles_of(lengths.q_rows, kGroupRows);
    const int tiles = shared::tiles_of(lengths.q_rows, rows), tile = work.row / rows;
    const int least = groups / tiles, small = tiles - groups % tiles;
    work.row = (tile * least + max(tile - small, 0)) * kGroupRows;
    rows = (tile < small ? least : least + 1) * kGroupRows;
  }
  work.keys = shared::key_tiles(work.band, work.row, rows, lengths, kKeyRows);
#pragma unroll 1
  for (int group = 0; group < config.groups(); ++group) {
    const int first = group * kGroupRows;
    shared::KeyTiles& seen = work.seen[group];
    seen = shared::key_tiles(work.band, work.row + first, kGroupRows, lengths, kKeyRows);
    if (first >= rows || work.row + first >= lengths.q_rows) seen.begin = seen.end = work.keys.begin;
  }
  work.to = common::destination_of(p, work);
}

}  // namespace flashback::sm90::forward
