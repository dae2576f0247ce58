// Which query rows see which keys, and the query tiles that a tile of keys has to visit.
#pragma once

#include <climits>
#include <cstdint>

namespace flashback::shared {

// kCausal is aligned to the bottom right: key j is visible to row i iff j <= i + k_rows - q_rows.
enum class Mask { kDense, kCausal };

struct Lengths {
  int q_rows, k_rows;
};

inline constexpr int kNoRow = INT_MAX;

// The first query row that sees `key`; all later rows see it as well. A later key is never seen by an earlier
// row. kNoRow past the last key.
constexpr int first_row_that_sees(Mask mask, int key, Lengths lengths) {
  if (key >= lengths.k_rows) return kNoRow;
  if (mask == Mask::kDense) return 0;
  const int row = key + (lengths.q_rows - lengths.k_rows);  // the sum of the lengths may not fit
  return row > 0 ? row : 0;
}

// The query tiles that see some key of a tile which starts at `key`, itself no further than the last key.
// Never empty: the last row sees every key.
struct TileRange {
  int begin, end;
};
constexpr TileRange query_tiles(Mask mask, int key, Lengths lengths, int tile_rows) {
  return {first_row_that_sees(mask, key, lengths) / tile_rows, (lengths.q_rows + tile_rows - 1) / tile_rows};
}

// Bit c: row `row + c` sees the key whose first row is `first_row`.
constexpr std::uint32_t rows_that_see(int first_row, int row) {
  const int hidden = first_row - row;
  return hidden <= 0 ? ~0u : hidden >= 32 ? 0u : ~0u << hidden;
}

}  // namespace flashback::shared
