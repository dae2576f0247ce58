// What a CTA works on next, by its ticket.
#pragma once

#include "kernels/shared/at_row.cuh"
#include "kernels/shared/sections.h"
#include "kernels/sm90/forward/config.h"

namespace flashback::sm90::forward {

template <Config config>
__device__ void find_work(const Parameters& p, int ticket, Work& work) {
  constexpr Mask kMask = config.mask;
  constexpr int kRows = config.query_rows();
  const shared::Sequences& s = p.sequences;
  shared::Place place = {-1, 0};
  if (ticket >= s.q.all_tiles * p.heads) {
    // There are not so many.
  } else if (s.q.first_tile) {
    const auto found = shared::head_place_of(s.q, s.batch, p.heads, ticket, kMask == Mask::kDense);
    place = found.place;
    work.head = found.head;
  } else {
    const shared::Share share = shared::share_of(ticket, p.section, s.q.tiles, s.batch * p.heads);
    place = {share.head / p.heads, share.tile};
    work.head = share.head % p.heads;
  }
  work.batch = place.batch;
  if (place.batch < 0) return;
  work.sight = shared::sight_of(s, place.batch);
  const shared::Lengths lengths = work.sight.lengths(s);
  const int row = (shared::tiles_of(lengths.q_rows, kRows) - 1 - place.tile) * kRows;
  work.query_row = row;
  work.band = shared::band_of(kMask, lengths);
  const shared::KeyRange first = shared::keys_seen(work.band, row, lengths.k_rows);
  const shared::KeyRange last =
      shared::keys_seen(work.band, min(row + kRows, lengths.q_rows) - 1, lengths.k_rows);
  work.begin = first.begin / kKeyRows;
  work.end = shared::tiles_of(last.end, kKeyRows);
  // Rows see later keys the later they are: all of them see those from the last row's first to the first
  // row's last.
  work.edge = min(max(first.end / kKeyRows, work.begin), work.end);
  work.whole = min(shared::tiles_of(last.begin, kKeyRows), work.edge);
#pragma unroll 1
  for (int group = 0; group < config.groups(); ++group) {
    const int of_group = row + group * kGroupRows;
    shared::TileRange& seen = work.seen[group];
    seen = {work.begin, work.begin};
    if (of_group >= lengths.q_rows) continue;
    seen.begin = shared::keys_seen(work.band, of_group, lengths.k_rows).begin / kKeyRows;
    seen.end = shared::tiles_of(
        shared::keys_seen(work.band, min(of_group + kGroupRows, lengths.q_rows) - 1, lengths.k_rows).end,
        kKeyRows);
  }
}

}  // namespace flashback::sm90::forward
