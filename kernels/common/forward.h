// What the host tells a forward kernel, and how a ticket becomes a tile of queries. Plain C++.
#pragma once

#include <cstdint>

#include "kernels/common/parameters.h"
#include "kernels/shared/mask.h"
#include "kernels/shared/sections.h"
#include "kernels/shared/sequences.h"
#include "kernels/shared/tensor_map_bytes.h"

namespace flashback::common {

struct ForwardParameters {
  // 16-bit loads: dims (d, row, head, batch, shift), box 64 channels x the rows of a tile, 128-byte swizzle.
  // Rows end where the sequence ends: see at_row.
  TensorMapBytes q, k, v;
  View out;
  RowOutput lse;              // no data: not wanted
  const float* sink;          // [head], or null
  std::int32_t* next_ticket;  // zero before the launch

  // |scale| * log2(e). With a negative scale the queries, or their products, are negated, so that the largest
  // score is the largest product.
  float scale_log2;
  bool negate_q;
  std::int32_t heads;
  std::int32_t group;  // query heads of a key/value head
  std::int32_t head_dim;
  // Tickets run over sections of so many heads, of all sequences; within a section tiles of queries descend
  // slowest, so that under a causal mask the longest items come first and the last ones fill the gaps. Ragged
  // sequences: shared::head_place_of.
  std::int32_t section;
  shared::Sequences sequences;
};

// A tile of queries of one head: what a ticket stands for.
struct Queries {
  int batch;  // -1: there are not so many
  int head;
  int row;  // the first one, of the queries in sight
  shared::Sight sight;
  shared::Band band;
};
// Written where they are wanted: a copy of them changes the registers of the whole kernel.
constexpr void find_queries(const ForwardParameters& p, shared::Mask mask, int tile_rows, int ticket,
                            Queries& found) {
  const shared::Sequences& s = p.sequences;
  shared::Place place = {-1, 0};
  if (ticket >= s.q.all_tiles * p.heads) {
    // There are not so many.
  } else if (s.q.first_tile) {
    const auto at = shared::head_place_of(s.q, s.batch, p.heads, ticket, mask == shared::Mask::kDense);
    place = at.place;
    found.head = at.head;
  } else {
    const shared::Share share = shared::share_of(ticket, p.section, s.q.tiles, s.batch * p.heads);
    place = {share.head / p.heads, share.tile};
    found.head = share.head % p.heads;
  }
  found.batch = place.batch;
  if (place.batch < 0) return;
  found.sight = shared::sight_of(s, place.batch);
  const shared::Lengths lengths = found.sight.lengths(s);
  found.row = (shared::tiles_of(lengths.q_rows, tile_rows) - 1 - place.tile) * tile_rows;
  found.band = shared::band_of(mask, lengths);
}

// Where a tile of queries leaves what it makes of them: its first row.
struct Destination {
  std::uint16_t* out;
  float* lse;  // null: not wanted
};
constexpr Destination destination_of(const ForwardParameters& p, const Queries& queries) {
  const std::int64_t row = queries.sight.q.first + queries.row;
  return {static_cast<std::uint16_t*>(p.out.data) + queries.batch * p.out.batch_stride +
              row * p.out.row_stride + queries.head * p.out.head_stride,
          p.lse.data
              ? p.lse.data + queries.batch * p.lse.batch_stride + queries.head * p.lse.head_stride + row
              : nullptr};
}

}  // namespace flashback::common
