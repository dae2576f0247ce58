// The order in which key tiles add their parts to the dQ of a query tile, where it must be the same in every
// run. Plain C++, tested on the host.
#pragma once

#include "kernels/shared/mask.h"

namespace flashback::shared {

// Under kCausal and kWindow the last key tile that sees the query tile adds first: CTAs are started from the
// last key tile on, each begins with the first query tile that it sees, and so finds its turn come. Under
// kDense all begin with the first query tile, and the first key tile adds first.
constexpr bool last_tile_first(Mask mask) {
  return mask != Mask::kDense;
}

// How many key tiles add to `query_tile` before `key_tile` does, which sees it.
constexpr int turn_of(Mask mask, int key_tile, int query_tile, Lengths lengths, int query_rows,
                      int key_rows) {
  if (mask == Mask::kDense) return key_tile;
  const int last_tile = (lengths.k_rows - 1) / key_rows;
  if (mask == Mask::kWindow && lengths.right == kUnbounded) return last_tile - key_tile;
  // The last key that a row of the tile sees.
  const int end = (query_tile + 1) * query_rows, last_row = (end < lengths.q_rows ? end : lengths.q_rows) - 1;
  const std::int64_t key =
      std::int64_t{last_row} + lengths.k_rows - lengths.q_rows + (mask == Mask::kCausal ? 0 : lengths.right);
  const std::int64_t first_to_add = key / key_rows < last_tile ? key / key_rows : last_tile;
  return static_cast<int>(first_to_add) - key_tile;
}

}  // namespace flashback::shared
