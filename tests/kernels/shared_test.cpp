// Masks, tile ranges, turns and what is in sight against brute force, and the order of the dQ accumulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/shared/dq_order.h"
#include "kernels/shared/mask.h"
#include "kernels/shared/sections.h"
#include "kernels/shared/sequences.h"
#include "kernels/shared/turns.h"

namespace flashback::shared {
namespace {

constexpr int kTile = 128;

bool visible(Mask mask, int row, int key, Lengths lengths) {
  if (key >= lengths.k_rows) return false;
  const std::int64_t behind =
      std::int64_t{key} - row - lengths.k_rows + lengths.q_rows;  // of where it stands
  switch (mask) {
    case Mask::kDense:
      return true;
    case Mask::kCausal:
      return behind <= 0;
    case Mask::kWindow:
      return behind <= lengths.right && -behind <= lengths.left;
  }
  return false;
}

struct MaskCase {
  Mask mask;
  int left = kUnbounded, right = kUnbounded;
};

void PrintTo(const MaskCase& c, std::ostream* out) {
  *out << static_cast<int>(c.mask) << " " << c.left << " " << c.right;
}

class MaskTest : public testing::TestWithParam<MaskCase> {
 protected:
  // Every pair of lengths.
  template <typename Body>
  void for_each(Body body) {
    constexpr int kLengths[] = {1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257, 300, 512};
    for (int q_rows : kLengths) {
      for (int k_rows : kLengths) body({q_rows, k_rows, GetParam().left, GetParam().right});
    }
  }
  const Mask mask_ = GetParam().mask;
};

TEST_P(MaskTest, RowsAreBetweenTheFirstAndTheLast) {
  for_each([&](Lengths lengths) {
    for (int key = 0; key < lengths.k_rows; ++key) {
      const int first = first_row_that_sees(mask_, key, lengths),
                last = last_row_that_sees(mask_, key, lengths);
      for (int row = 0; row < lengths.q_rows; ++row) {
        ASSERT_EQ(row >= first && row <= last, visible(mask_, row, key, lengths))
            << "row " << row << " of " << lengths.q_rows << ", key " << key << " of " << lengths.k_rows;
      }
    }
    EXPECT_EQ(first_row_that_sees(mask_, lengths.k_rows, lengths), kNoRow);
  });
}

TEST_P(MaskTest, KeysSeenAreABand) {
  for_each([&](Lengths lengths) {
    const Band band = band_of(mask_, lengths);
    for (int row = 0; row < lengths.q_rows; ++row) {
      const KeyRange keys = keys_seen(band, row, lengths.k_rows);
      for (int key = 0; key < lengths.k_rows; ++key) {
        ASSERT_EQ(key >= keys.begin && key < keys.end, visible(mask_, row, key, lengths))
            << "row " << row << " of " << lengths.q_rows << ", key " << key << " of " << lengths.k_rows;
      }
    }
  });
}

bool any_visible(Mask mask, int tile, int key_tile, Lengths lengths) {
  for (int row = tile * kTile; row < std::min(lengths.q_rows, (tile + 1) * kTile); ++row) {
    for (int key = key_tile * kTile; key < std::min(lengths.k_rows, (key_tile + 1) * kTile); ++key) {
      if (visible(mask, row, key, lengths)) return true;
    }
  }
  return false;
}

bool all_visible(Mask mask, int tile, int key_tile, Lengths lengths) {
  for (int row = tile * kTile; row < std::min(lengths.q_rows, (tile + 1) * kTile); ++row) {
    for (int key = key_tile * kTile; key < (key_tile + 1) * kTile; ++key) {
      if (key >= lengths.k_rows || !visible(mask, row, key, lengths)) return false;
    }
  }
  return true;
}

// Of sequences in which every row sees a key: what a forward kernel visits, and where it masks.
TEST_P(MaskTest, KeyTilesAreThoseWithAVisibleElement) {
  for_each([&](Lengths lengths) {
    const Band band = band_of(mask_, lengths);
    const auto seen = [&](int row) { return keys_seen(band, row, lengths.k_rows); };
    for (int row = 0; row < lengths.q_rows; ++row) {
      if (seen(row).begin >= seen(row).end) return;
    }
    for (int tile = 0; tile * kTile < lengths.q_rows + kTile; ++tile) {
      const KeyTiles keys = key_tiles(band, tile * kTile, kTile, lengths, kTile);
      for (int key_tile = 0; key_tile * kTile < lengths.k_rows; ++key_tile) {
        ASSERT_EQ(keys.holds(key_tile), any_visible(mask_, tile, key_tile, lengths))
            << "query tile " << tile << " of " << lengths.q_rows << " rows, key tile " << key_tile << " of "
            << lengths.k_rows;
        if (keys.holds(key_tile)) {
          ASSERT_EQ(!keys.partly_seen(key_tile), all_visible(mask_, tile, key_tile, lengths))
              << "query tile " << tile << " of " << lengths.q_rows << " rows, key tile " << key_tile << " of "
              << lengths.k_rows;
        }
      }
    }
  });
}

TEST_P(MaskTest, QueryTilesAreThoseWithAVisibleElement) {
  for_each([&](Lengths lengths) {
    for (int key_tile = 0; key_tile * kTile < lengths.k_rows; ++key_tile) {
      const TileRange range = query_tiles(mask_, key_tile * kTile, lengths, kTile, kTile);
      ASSERT_LE(range.begin, range.end);
      for (int tile = 0; tile * kTile < lengths.q_rows; ++tile) {
        ASSERT_EQ(any_visible(mask_, tile, key_tile, lengths), tile >= range.begin && tile < range.end)
            << "query tile " << tile << " of " << lengths.q_rows << " rows, key tile " << key_tile << " of "
            << lengths.k_rows;
      }
    }
  });
}

// Each key tile that sees a query tile has a turn of its own, 0, 1, ..., in the order of the CTAs.
TEST_P(MaskTest, TurnsAreCountedWithoutGaps) {
  for_each([&](Lengths lengths) {
    for (int tile = 0; tile * kTile < lengths.q_rows; ++tile) {
      std::vector<int> key_tiles;
      for (int key_tile = 0; key_tile * kTile < lengths.k_rows; ++key_tile) {
        if (any_visible(mask_, tile, key_tile, lengths)) key_tiles.push_back(key_tile);
      }
      if (last_tile_first(mask_)) std::reverse(key_tiles.begin(), key_tiles.end());
      for (std::size_t i = 0; i < key_tiles.size(); ++i) {
        ASSERT_EQ(turn_of(mask_, key_tiles[i], tile, lengths, kTile, kTile), static_cast<int>(i))
            << "query tile " << tile << " of " << lengths.q_rows << " rows, key tile " << key_tiles[i]
            << " of " << lengths.k_rows;
      }
    }
  });
}

// Blocks one after another; within a block, at every query tile, the order in which its key tiles come by.
TEST(Rotation, KeyTilesOfABlockAddInTheOrderInWhichTheyCome) {
  for (int block : {1, 2, 3, 7, 16}) {
    for (int key_tiles : {1, 2, 5, 16, 33}) {
      for (int query_tiles : {1, 2, 3, 10, 66}) {
        const Rotation rotation = {block, key_tiles, query_tiles};
        const auto steps = [&](int key_tile, int query_tile) {  // until it comes there
          return (query_tile - rotation.begin(key_tile) + query_tiles) % query_tiles;
        };
        for (int query_tile = 0; query_tile < query_tiles; ++query_tile) {
          std::vector<int> order(key_tiles, -1);
          for (int key_tile = 0; key_tile < key_tiles; ++key_tile) {
            const int turn = rotation.turn(key_tile, query_tile);
            ASSERT_TRUE(turn >= 0 && turn < key_tiles && order[turn] == -1)
                << block << " " << key_tiles << " " << query_tiles;
            order[turn] = key_tile;
          }
          for (int turn = 1; turn < key_tiles; ++turn) {
            const int before = order[turn - 1], after = order[turn];
            ASSERT_LE(before / block, after / block);
            if (before / block == after / block) {
              ASSERT_LE(steps(before, query_tile), steps(after, query_tile));
            }
          }
        }
      }
    }
  }
}

// What is in sight has rows that all see a key, and keys that are all seen; and it is all that there is.
TEST_P(MaskTest, SightDropsWhatSeesNothing) {
  for_each([&](Lengths lengths) {
    Sequences s = {};
    s.batch = 1;
    s.q.rows = lengths.q_rows;
    s.k.rows = lengths.k_rows;
    s.left = lengths.left;
    s.right = mask_ == Mask::kCausal ? 0 : lengths.right;
    const Sight sight = sight_of(s, 0);
    EXPECT_EQ(sight.q.first + sight.q.count, lengths.q_rows);
    EXPECT_EQ(sight.k.first + sight.k.count, lengths.k_rows);
    for (int row = 0; row < lengths.q_rows; ++row) {
      bool sees = false;
      for (int key = 0; key < lengths.k_rows; ++key) sees = sees || visible(mask_, row, key, lengths);
      ASSERT_EQ(sees, row >= sight.q.first) << row << " of " << lengths.q_rows << ", " << lengths.k_rows;
    }
    for (int key = 0; key < lengths.k_rows; ++key) {
      bool seen = false;
      for (int row = 0; row < lengths.q_rows; ++row) seen = seen || visible(mask_, row, key, lengths);
      ASSERT_EQ(seen, key >= sight.k.first) << key << " of " << lengths.k_rows << ", " << lengths.q_rows;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Masks, MaskTest,
                         testing::Values(MaskCase{Mask::kDense}, MaskCase{Mask::kCausal},
                                         MaskCase{Mask::kWindow, 0, 0}, MaskCase{Mask::kWindow, 64, 0},
                                         MaskCase{Mask::kWindow, kUnbounded, 70},
                                         MaskCase{Mask::kWindow, 130, kUnbounded},
                                         MaskCase{Mask::kWindow, 3, 200}));

TEST(Sequences, WhateverTheNumbersRowsLieInMemory) {
  const std::int32_t offsets[] = {-5, 40, 30, 1 << 30}, used[] = {1 << 30, -7, 12};
  Side side = {};
  side.cu_seqlens = offsets;
  side.rows = 50;
  for (const std::int32_t* seqused : {static_cast<const std::int32_t*>(nullptr), &used[0]}) {
    side.seqused = seqused;
    for (int batch = 0; batch < 3; ++batch) {
      const Rows rows = rows_of(side, batch);
      EXPECT_GE(rows.first, 0);
      EXPECT_GE(rows.count, 0);
      EXPECT_LE(rows.first + rows.count, 50);
    }
  }
}

TEST(Sequences, PlacesAndOwners) {
  const std::int32_t offsets[] = {0, 0, 300, 300, 310}, first_tile[] = {0, 0, 3, 3, 4};
  Side side = {};
  side.cu_seqlens = offsets;
  side.first_tile = first_tile;
  side.rows = 320;
  const auto place = [&](int number) {
    const Place p = place_of(side, 4, number);
    return std::pair(p.batch, p.tile);
  };
  EXPECT_EQ(place(0), std::pair(1, 0));
  EXPECT_EQ(place(2), std::pair(1, 2));
  EXPECT_EQ(place(3), std::pair(3, 0));
  EXPECT_EQ(place(4).first, -1);
  EXPECT_EQ(owner_of(side, 4, 299).batch, 1);
  EXPECT_EQ(owner_of(side, 4, 299).tile, 299);
  EXPECT_EQ(owner_of(side, 4, 300).batch, 3);
  EXPECT_EQ(owner_of(side, 4, 310).batch, -1);
  EXPECT_EQ(owner_of(side, 0, 0).batch, -1);
}

TEST(RowsThatSee, IsOneBitARow) {
  for (int first : {0, 1, 5, 31, 32, 33, 64, 1000, kNoRow}) {
    for (int row : {0, 1, 32, 64, 96, 999, 2000000000}) {
      const std::uint32_t bits = rows_that_see(first, row);
      for (int c = 0; c < 32; ++c)
        EXPECT_EQ(bits >> c & 1, row + c >= first) << first << " " << row << " " << c;
    }
  }
}

TEST(RowsUpTo, IsOneBitARow) {
  for (int last : {-1, 0, 5, 31, 32, 33, 64, 1000}) {
    for (int row : {0, 1, 32, 64, 96, 999, 2000000000}) {
      const std::uint32_t bits = rows_up_to(last, row);
      for (int c = 0; c < 32; ++c)
        EXPECT_EQ(bits >> c & 1, row + c <= last) << last << " " << row << " " << c;
    }
  }
}

TEST(DqOrder, HasEveryElementOfATileOnce) {
  std::set<int> offsets;
  for (int row = 0; row < kTile; ++row) {
    for (int d = 0; d < 64; ++d) offsets.insert(dq_offset(row, d / 4 * 4) + d % 4);
  }
  EXPECT_EQ(offsets.size(), 128u * 64);
  EXPECT_EQ(*offsets.rbegin(), 128 * 64 - 1);
}

TEST(DqOrder, Keeps32ColumnsTogether) {
  for (int row = 0; row < kTile; ++row) {
    for (int d = 0; d < 64; d += 4) EXPECT_EQ(dq_offset(row, d) / (kTile * 32), d / 32);
  }
}

TEST(Bands, EndWhereNoRowSeesMore) {
  constexpr int kMost = 1 << 30;
  for (const Lengths& lengths : {Lengths{kMost, 1, kMost, kMost}, Lengths{1, kMost, kMost, kMost}}) {
    const Band band = band_of(Mask::kWindow, lengths);
    const KeyRange first = keys_seen(band, 0, lengths.k_rows),
                   last = keys_seen(band, lengths.q_rows - 1, lengths.k_rows);
    EXPECT_LE(first.begin, first.end);
    EXPECT_EQ(last.begin, 0);
    EXPECT_EQ(last.end, lengths.k_rows);
  }
}

// Every tile of every head of every sequence once, whichever order; by head, a head's tiles one after
// another.
TEST(HeadPlaces, CoverAllTilesOfRaggedSequences) {
  constexpr std::int32_t kFirst[] = {0, 3, 3, 4, 9};
  constexpr int kBatches = 4, kHeads = 3;
  const Side side = {kFirst, nullptr, kFirst, 100, 0, 20};
  for (const bool by_head : {false, true}) {
    std::set<std::tuple<int, int, int>> seen;
    int last_tile = -1, last_head = -1, last_batch = -1;
    for (int ticket = 0; ticket < 9 * kHeads; ++ticket) {
      const auto [place, head] = head_place_of(side, kBatches, kHeads, ticket, by_head);
      ASSERT_GE(place.batch, last_batch);
      EXPECT_TRUE(head >= 0 && head < kHeads && place.tile >= 0);
      EXPECT_LT(place.tile, kFirst[place.batch + 1] - kFirst[place.batch]);
      EXPECT_TRUE(seen.insert({place.batch, place.tile, head}).second) << ticket;
      if (place.batch == last_batch) {
        EXPECT_GE(by_head ? head : place.tile, by_head ? last_head : last_tile);
      }
      last_batch = place.batch;
      last_head = head;
      last_tile = place.tile;
    }
    for (int ticket = 9 * kHeads; ticket < 20 * kHeads; ++ticket)
      EXPECT_EQ(head_place_of(side, kBatches, kHeads, ticket, by_head).place.batch, -1);
  }
}

// Every tile of every head once; the heads of a section before the next tile.
TEST(Sections, CoverAllTiles) {
  for (int section : {1, 2, 3, 7}) {
    constexpr int kTiles = 4, kHeads = 7;
    std::set<std::pair<int, int>> seen;
    for (int ticket = 0; ticket < kTiles * kHeads; ++ticket) {
      const Share share = share_of(ticket, section, kTiles, kHeads);
      EXPECT_TRUE(share.tile >= 0 && share.tile < kTiles && share.head >= 0 && share.head < kHeads);
      EXPECT_TRUE(seen.insert({share.tile, share.head}).second);
      const int first = share.head / section * section, heads = std::min(section, kHeads - first);
      EXPECT_EQ(ticket, first * kTiles + share.tile * heads + share.head - first);
    }
  }
}

}  // namespace
}  // namespace flashback::shared
