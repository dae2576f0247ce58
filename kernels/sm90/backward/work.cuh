// What a CTA works on next, by its ticket, and where that lies in the workspace.
#pragma once

#include "kernels/shared/at_row.cuh"
#include "kernels/shared/sections.h"
#include "kernels/shared/turns.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm90/backward/config.h"
#include "kernels/tile/ring.h"

namespace flashback::sm90::backward {

using tile::RingPosition;

template <int ctas>
using WorkReader = shared::WorkReader<SharedMemory<ctas>>;

// Of the work's sequence, under kDense.
__device__ inline shared::Rotation rotation_of(const Parameters& p, const Work& work) {
  return {p.rotation, shared::tiles_of(work.sight.k.count, kKeyRows),
          shared::tiles_of(work.sight.q.count, kQueryRows)};
}

// How many tiles of keys add to query tile t before this one.
template <Mask mask>
__device__ int turn_of(const Parameters& p, const Work& work, int t) {
  const int tile = work.key_row / kKeyRows;
  if (mask == Mask::kDense) return rotation_of(p, work).turn(tile, t);
  return shared::turn_of(mask, tile, t, work.sight.lengths(p.sequences), kQueryRows, kKeyRows);
}

// Where CTAs work alone. With a rotation key tiles of a block wait for each other, and no CTA may have two of
// them: it takes every gridDim.x-th ticket, which is at least a block further.
__device__ inline int next_ticket(const Parameters& p, int ticket) {
  const int all = static_cast<int>(gridDim.x);
  return p.rotation > 1 ? ticket + all : all + ptx::take_number(p.next_ticket);
}

// By the place of the tile of keys among those of all sequences. Of a pair both CTAs find the same query
// tiles, those that see any of the item's keys. Pairs have sequences that are all alike.
template <Config config>
__device__ void find_work(const Parameters& p, int ticket, int rank, Work& work) {
  constexpr Mask mask = config.mask;
  const shared::Sequences& s = p.sequences;
  const int items = (s.k.tiles + config.ctas - 1) / config.ctas, parts = p.kv_heads * p.parts;
  const bool ragged = config.ctas == 1 && s.k.first_tile;
  shared::Place place = {-1, 0};
  int part = 0;  // of those of the sequence
  if (ticket >= (config.ctas == 1 ? s.k.all_tiles : s.batch * items) * parts) {
    // There are not so many.
  } else if (ragged) {
    // Key tiles of one head side by side would wait for each other's turns.
    const bool by_head = mask == Mask::kDense && !p.dq_turns;
    const auto found = shared::head_place_of(s.k, s.batch, parts, ticket, by_head);
    place = found.place;
    part = found.head;
  } else {
    const shared::Share share = shared::share_of(ticket, p.section, items, s.batch * parts);
    place = {share.head / parts, config.ctas * share.tile + rank};
    part = share.head % parts;
  }
  work.batch = place.batch;
  if (place.batch < 0) return;
  work.kv_head = part / p.parts;
  work.part = part % p.parts;
  const int before = work.part * p.part_heads;  // heads of the group
  work.head = work.kv_head * p.group + before;
  work.heads = min(p.part_heads, p.group - before);
  work.sight = shared::sight_of(s, place.batch);
  const shared::Lengths lengths = work.sight.lengths(s);
  const bool backwards = p.dq_turns && shared::last_tile_first(mask);
  const int tile = backwards ? shared::tiles_of(work.sight.k.count, kKeyRows) - 1 - place.tile : place.tile;
  const int key = tile * kKeyRows, last_key = min(key + kKeyRows, lengths.k_rows) - 1;
  work.key_row = key;
  work.query_number = static_cast<int>(shared::first_tile_of(s.q, place.batch));
  const shared::TileRange tiles =
      shared::query_tiles(mask, key - rank * kKeyRows, lengths, kQueryRows, config.ctas * kKeyRows);
  work.begin = tiles.begin;
  work.end = tiles.end;
  // Rows from `whole` to `last` see every key that there is. Missing keys need no mask: they are zeros, and
  // so is what they add to dQ; their dV and dK are not stored.
  const int whole = shared::first_row_that_sees(mask, last_key, lengths);
  const int last = shared::last_row_that_sees(mask, key, lengths);
  work.edge = max(tiles.begin, min(tiles.end, (whole + kQueryRows - 1) / kQueryRows));
  work.first = p.dq_turns && mask == Mask::kDense ? rotation_of(p, work).begin(tile) : tiles.begin;
  // Past the last row of the sequence there is nothing to hide: P is zero there.
  work.tail = last == lengths.q_rows - 1 ? tiles.end : max(work.edge, (last + 1) / kQueryRows);
}

// The number of a head's first query tile of the sequence, among those of all heads.
__device__ inline std::int64_t query_number(const Parameters& p, const Work& work, int head) {
  return std::int64_t{head} * p.sequences.q.all_tiles + work.query_number;
}

// The number of the work's tile of keys, among those of all key/value heads.
__device__ inline std::int64_t key_number(const Parameters& p, const Work& work) {
  const shared::Side& k = p.sequences.k;
  return std::int64_t{work.kv_head} * k.all_tiles + shared::first_tile_of(k, work.batch) +
         work.key_row / kKeyRows;
}

}  // namespace flashback::sm90::backward
