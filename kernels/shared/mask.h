// Which query rows see which keys, and the query tiles that a tile of keys has to visit.
#pragma once

#include <climits>
#include <cstdint>

namespace flashback::shared {

// A query row i stands at key j = i + k_rows - q_rows: the last row at the last key. It sees, of the keys
// that there are: kDense all; kCausal none after j; kWindow from j - left to j + right.
enum class Mask { kDense, kCausal, kWindow };

inline constexpr int kUnbounded = INT_MAX;

struct Lengths {
  int q_rows, k_rows;
  int left = kUnbounded, right = kUnbounded;  // of kWindow
};

inline constexpr int kNoRow = INT_MAX;

// The first query row that sees `key`, were there rows enough; under kDense and kCausal all later ones see it
// as well. A later key is never seen by an earlier row. kNoRow past the last key.
constexpr int first_row_that_sees(Mask mask, int key, Lengths lengths) {
  if (key >= lengths.k_rows) return kNoRow;
  if (mask == Mask::kDense || (mask == Mask::kWindow && lengths.right == kUnbounded)) return 0;
  const int right = mask == Mask::kCausal ? 0 : lengths.right;
  // In 64 bits: the sums may not fit.
  const std::int64_t row = std::int64_t{key} + lengths.q_rows - lengths.k_rows - right;
  return row > 0 ? static_cast<int>(row) : 0;
}

// The last query row that sees `key`, a key that there is; -1 where it is before the first.
constexpr int last_row_that_sees(Mask mask, int key, Lengths lengths) {
  const int last = lengths.q_rows - 1;
  if (mask != Mask::kWindow || lengths.left == kUnbounded) return last;
  const std::int64_t row = std::int64_t{key} + lengths.q_rows - lengths.k_rows + lengths.left;
  return row >= last ? last : row < 0 ? -1 : static_cast<int>(row);
}

// Query row i sees the keys from i + begin up to i + end, without the last one, of those that there are. Both
// are at most 2^30 away, where no row sees another key.
struct Band {
  int begin, end;
};
constexpr Band band_of(Mask mask, Lengths lengths) {
  constexpr std::int64_t kFar = 1 << 30;
  const std::int64_t at = std::int64_t{lengths.k_rows} - lengths.q_rows;
  const auto within = [](std::int64_t x) {
    return static_cast<int>(x < -kFar ? -kFar : x > kFar ? kFar : x);
  };
  const bool left = mask == Mask::kWindow && lengths.left != kUnbounded;
  const bool right = mask == Mask::kCausal || (mask == Mask::kWindow && lengths.right != kUnbounded);
  return {within(left ? at - lengths.left : -kFar),
          within(!right ? kFar : at + (mask == Mask::kCausal ? 0 : lengths.right) + 1)};
}

// The keys [begin, end) that a row sees; empty where begin is not below end.
struct KeyRange {
  int begin, end;
};
constexpr KeyRange keys_seen(Band band, int row, int k_rows) {
  const auto within = [&](int key) { return key < 0 ? 0 : key > k_rows ? k_rows : key; };
  return {within(row + band.begin), within(row + band.end)};
}

// The tiles of keys [begin, end) that the `rows` query rows from `row` on see, of those that there are.
// Outside [whole, edge) some row sees a tile in part. Every row that there is sees a key.
struct KeyTiles {
  int begin, whole, edge, end;

  constexpr int count() const { return end - begin; }
  constexpr bool holds(int tile) const { return tile >= begin && tile < end; }
  constexpr bool partly_seen(int tile) const { return tile < whole || tile >= edge; }
};
constexpr KeyTiles key_tiles(Band band, int row, int rows, Lengths lengths, int tile_keys) {
  if (row >= lengths.q_rows) return {0, 0, 0, 0};
  const auto round_up = [&](int keys) { return (keys + tile_keys - 1) / tile_keys; };
  const auto within = [](int x, int least, int most) { return x < least ? least : x > most ? most : x; };
  // Rows see later keys the later they are: all of them see those from the last row's first to the first
  // row's last.
  const int last_row = (row + rows < lengths.q_rows ? row + rows : lengths.q_rows) - 1;
  const KeyRange first = keys_seen(band, row, lengths.k_rows),
                 last = keys_seen(band, last_row, lengths.k_rows);
  KeyTiles tiles = {};
  tiles.begin = first.begin / tile_keys;
  tiles.end = round_up(last.end);
  tiles.edge = within(first.end / tile_keys, tiles.begin, tiles.end);
  tiles.whole = within(round_up(last.begin), tiles.begin, tiles.edge);
  return tiles;
}

// The query tiles that see some of the `keys` keys from `key` on, the first of which there is. Never empty
// where every key is seen.
struct TileRange {
  int begin, end;
};
constexpr TileRange query_tiles(Mask mask, int key, Lengths lengths, int tile_rows, int keys = 1) {
  const int last_key = key + keys < lengths.k_rows ? key + keys - 1 : lengths.k_rows - 1;
  const int first = first_row_that_sees(mask, key, lengths),
            last = last_row_that_sees(mask, last_key, lengths);
  if (first > last) return {0, 0};
  return {first / tile_rows, last / tile_rows + 1};
}

// Bit c: row `row + c` is not before `first_row`.
constexpr std::uint32_t rows_that_see(int first_row, int row) {
  const int hidden = first_row - row;
  return hidden <= 0 ? ~0u : hidden >= 32 ? 0u : ~0u << hidden;
}

// Bit c: row `row + c` is not after `last_row`.
constexpr std::uint32_t rows_up_to(int last_row, int row) {
  const int seen = last_row - row + 1;
  return seen >= 32 ? ~0u : seen <= 0 ? 0u : ~0u >> (32 - seen);
}

}  // namespace flashback::shared
