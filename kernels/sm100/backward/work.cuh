// What a CTA works on, where that lies in the tensors and in the workspace, and whose turn it is.
#pragma once

#include "kernels/shared/at_row.cuh"
#include "kernels/shared/turns.cuh"
#include "kernels/sm100/backward/config.h"

namespace flashback::sm100::backward {

// By the number of the tile of keys among those of all sequences.
template <Mask mask>
__device__ Work work_of(const Parameters& p, int number, int head) {
  const shared::Sequences& s = p.sequences;
  const shared::Place place = shared::place_of(s.k, s.batch, number);
  Work work = {};
  work.batch = place.batch;
  work.head = head;
  if (place.batch < 0) return work;
  work.first_query_tile = std::int64_t{head} * s.q.all_tiles + shared::first_tile_of(s.q, place.batch);
  work.sight = shared::sight_of(s, place.batch);
  work.lengths = work.sight.lengths(s);
  const bool backwards = p.next_work && shared::last_tile_first(mask);
  work.key_tile = backwards ? shared::tiles_of(work.sight.k.count, kKeyRows) - 1 - place.tile : place.tile;
  work.k_number = number - place.tile + work.key_tile;
  work.tiles = shared::query_tiles(mask, work.key_tile * kKeyRows, work.lengths, kQueryRows, kKeyRows);
  return work;
}

// The CTA's item: that of its place in the grid, or in deterministic mode the next one.
template <Mask mask>
__device__ Work take_work(const Parameters& p) {
  if (!p.next_work) return work_of<mask>(p, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y));
  const std::int32_t item = ptx::take_number(p.next_work), tiles = static_cast<std::int32_t>(gridDim.x);
  return work_of<mask>(p, item % tiles, item / tiles);
}

__device__ inline ptx::Coordinates5 at_query(const Parameters& p, const Work& work, int row, int d) {
  return shared::at_row(p.sequences.q, work.sight.q, row, work.head, work.batch, d);
}
__device__ inline ptx::Coordinates5 at_keys(const Parameters& p, const Work& work, int d) {
  return shared::at_row(p.sequences.k, work.sight.k, work.key_tile * kKeyRows, work.head / p.group,
                        work.batch, d);
}

// The number of the tile of keys among those of all heads.
__device__ inline std::int64_t key_tile_number(const Parameters& p, const Work& work) {
  return std::int64_t{work.head / p.group} * p.sequences.k.all_tiles + work.k_number;
}

}  // namespace flashback::sm100::backward
