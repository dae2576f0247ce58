// What a CTA works on, where that lies in the tensors and in the workspace, and whose turn it is.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"
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

// A row of a sequence in a map that ends its rows at side.rows: the last row of the sequence is put there, so
// that what follows it in memory is out of bounds, zero to loads and closed to stores. `shift` brings the
// address back to where the sequence is; without ragged sequences their end is that of the tensor.
__device__ inline ptx::Coordinates5 at_row(const shared::Side& side, const shared::Rows& rows, int row, int d,
                                           int head, int batch) {
  return {d, side.rows - rows.count + row, head, side.cu_seqlens ? 0 : batch,
          side.ragged() ? rows.first + rows.count : 0};
}
__device__ inline ptx::Coordinates5 at_query(const Parameters& p, const Work& work, int row, int d) {
  return at_row(p.sequences.q, work.sight.q, row, d, work.head, work.batch);
}
__device__ inline ptx::Coordinates5 at_keys(const Parameters& p, const Work& work, int d) {
  return at_row(p.sequences.k, work.sight.k, work.key_tile * kKeyRows, d, work.head / p.group, work.batch);
}

// The number of the tile of keys among those of all heads.
__device__ inline std::int64_t key_tile_number(const Parameters& p, const Work& work) {
  return std::int64_t{work.head / p.group} * p.sequences.k.all_tiles + work.k_number;
}

// Waits until `turns` additions have been made; those of this thread follow them.
__device__ inline void wait_turn(const std::int32_t* additions, int turns) {
  while (ptx::load_acquire(additions) != turns) {
  }
  ptx::fence_async_global();
}

// This thread's bulk additions have ended, and the next CTA may add.
__device__ inline void pass_turn(std::int32_t* additions) {
  ptx::wait_bulk();
  ptx::fence_async_global();
  ptx::add_release(additions, 1);
}

}  // namespace flashback::sm100::backward
