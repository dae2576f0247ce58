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

// Under kDense tiles of keys that run at the same time had better begin at different query tiles, so that
// none waits: `block` consecutive key tiles spread their beginnings evenly over the query tiles, go on to the
// end and then from the first one. Blocks add one after another; of a block, to each query tile, whoever
// comes there first. All of a block must be able to run at once, and block * (query_tiles + 1) must fit an
// int.
struct Rotation {
  int block;  // 1: every key tile begins with the first query tile
  int key_tiles, query_tiles;

  // Of a key tile's block: its first one, and how many they are.
  constexpr int first_of_block(int key_tile) const { return key_tile / block * block; }
  constexpr int in_block(int key_tile) const {
    const int rest = key_tiles - first_of_block(key_tile);
    return rest < block ? rest : block;
  }
  constexpr int begin(int key_tile) const {
    return (key_tile - first_of_block(key_tile)) * query_tiles / in_block(key_tile);
  }
  // How many key tiles add to `query_tile` before `key_tile` does.
  constexpr int turn(int key_tile, int query_tile) const {
    const int first = first_of_block(key_tile), here = key_tile - first, all = in_block(key_tile);
    // Those that begin no later than there: the last of them comes first, those after it come last.
    const int begun = ((query_tile + 1) * all + query_tiles - 1) / query_tiles;
    return first + (here < begun ? begun - 1 - here : all - 1 - here + begun);
  }
};

}  // namespace flashback::shared
