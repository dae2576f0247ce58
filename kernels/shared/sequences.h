// Which rows of which sequence there are, and how the tiles of all sequences are numbered. Plain C++: the
// host plans from this, kernels find their work by it.
#pragma once

#include <cstdint>

#include "kernels/shared/mask.h"

namespace flashback::shared {

// The rows of q, or of k.
struct Side {
  const std::int32_t* cu_seqlens;  // [batch + 1]; null: padded, every sequence has `rows` rows in memory
  const std::int32_t* seqused;     // [batch] rows that take part; null: all
  // [batch + 1] tiles of the sequences before, written by the schedule kernel; null: every sequence has
  // `tiles` tiles.
  const std::int32_t* first_tile;
  std::int32_t rows;       // in memory, of a sequence or of all packed ones
  std::int32_t tiles;      // of a sequence
  std::int32_t all_tiles;  // a bound on those of all sequences

  constexpr bool ragged() const { return cu_seqlens || seqused; }
};

struct Sequences {
  Side q, k;
  std::int32_t batch;
  std::int32_t left, right;  // bounds of the band, kUnbounded for none
};

struct Rows {
  int first, count;  // the first one in memory: of the sequence, or of all packed ones
};

// The rows of a sequence that take part. Whatever stands in cu_seqlens and seqused, they lie in memory.
constexpr Rows rows_of(const Side& side, int batch) {
  const auto within = [](int x, int most) { return x < 0 ? 0 : x > most ? most : x; };
  Rows rows = {0, side.rows};
  if (side.cu_seqlens) {
    rows.first = within(side.cu_seqlens[batch], side.rows);
    rows.count = within(side.cu_seqlens[batch + 1], side.rows) - rows.first;
  }
  if (rows.count < 0) rows.count = 0;
  if (side.seqused) rows.count = within(side.seqused[batch], rows.count);
  return rows;
}

// What of a sequence is in sight: query rows that see a key, and keys that a query row sees. The last row
// stands at the last key, so that only first rows can see nothing, and only first keys be seen by none;
// without them the rest is a sequence like any other.
struct Sight {
  Rows q, k;

  constexpr Lengths lengths(const Sequences& s) const { return {q.count, k.count, s.left, s.right}; }
};
constexpr Sight sight_of(const Sequences& s, int batch) {
  Rows q = rows_of(s.q, batch), k = rows_of(s.k, batch);
  if (q.count == 0 || k.count == 0) return {{q.first, 0}, {k.first, 0}};
  const auto drop = [](Rows& rows, std::int64_t count) {
    if (count <= 0) return;
    rows.first += static_cast<int>(count);
    rows.count -= static_cast<int>(count);
  };
  // The first row stands at key k.count - q.count, and sees `right` keys more.
  if (s.right != kUnbounded) drop(q, std::int64_t{q.count} - k.count - s.right);
  if (s.left != kUnbounded) drop(k, std::int64_t{k.count} - q.count - s.left);
  return {q, k};
}

constexpr int tiles_of(int rows, int tile_rows) {
  return (rows + tile_rows - 1) / tile_rows;
}

// A tile by its number among all of a side.
struct Place {
  int batch, tile;  // batch -1: there are not so many tiles
};
constexpr Place place_of(const Side& side, int batches, int number) {
  if (!side.first_tile) return {number / side.tiles, number % side.tiles};
  if (number >= side.first_tile[batches]) return {-1, 0};
  int low = 0, high = batches;  // first_tile[low] <= number < first_tile[high]
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (side.first_tile[middle] <= number ? low : high) = middle;
  }
  return {low, number - side.first_tile[low]};
}

// A tile of one head by a ticket, where sequences differ. Sequences follow each other. `by_head`: one head
// after another, whose rows then stay in the L2 cache; else all heads of a tile, so that the order of the
// tiles is that of the tickets.
struct HeadPlace {
  Place place;
  int head;
};
constexpr HeadPlace head_place_of(const Side& side, int batches, int heads, int ticket, bool by_head) {
  const Place place = place_of(side, batches, ticket / heads);
  if (!by_head || place.batch < 0) return {place, ticket % heads};
  const int first = side.first_tile[place.batch], tiles = side.first_tile[place.batch + 1] - first;
  const int rest = ticket - first * heads;
  return {{place.batch, rest % tiles}, rest / tiles};
}

// The number of a sequence's first tile.
constexpr std::int64_t first_tile_of(const Side& side, int batch) {
  return side.first_tile ? side.first_tile[batch] : std::int64_t{batch} * side.tiles;
}

// Where a row in memory belongs: to which sequence, as which of its rows. Batch -1: to none.
// The caller may know which sequences it can be.
struct Candidates {
  int begin, end;
};
constexpr Place owner_of(const Side& side, int batches, int row, Candidates among) {
  if (batches == 0 || row >= side.cu_seqlens[batches]) return {-1, 0};
  int low = among.begin, high = among.end;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (side.cu_seqlens[middle] <= row ? low : high) = middle;
  }
  return {low, row - side.cu_seqlens[low]};
}
constexpr Place owner_of(const Side& side, int batches, int row) {
  return owner_of(side, batches, row, {0, batches});
}

}  // namespace flashback::shared
