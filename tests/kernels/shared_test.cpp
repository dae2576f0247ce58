// Masks and tile ranges against brute force, and the order of the dQ accumulator.
#include <gtest/gtest.h>

#include <set>

#include "kernels/shared/dq_order.h"
#include "kernels/shared/mask.h"

namespace flashback::shared {
namespace {

constexpr int kTile = 128;

bool visible(Mask mask, int row, int key, Lengths lengths) {
  if (key >= lengths.k_rows) return false;
  return mask == Mask::kDense || key <= row + lengths.k_rows - lengths.q_rows;
}

class MaskTest : public testing::TestWithParam<Mask> {};

constexpr int kLengths[] = {1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257, 300, 512};

TEST_P(MaskTest, FirstRowIsWhereVisibilityBegins) {
  for (int q_rows : kLengths) {
    for (int k_rows : kLengths) {
      const Lengths lengths = {q_rows, k_rows};
      for (int key = 0; key < k_rows + kTile; ++key) {
        const int first = first_row_that_sees(GetParam(), key, lengths);
        for (int row = 0; row < q_rows; ++row) {
          ASSERT_EQ(row >= first, visible(GetParam(), row, key, lengths))
              << "row " << row << " of " << q_rows << ", key " << key << " of " << k_rows;
        }
      }
    }
  }
}

TEST_P(MaskTest, QueryTilesAreThoseWithAVisibleElement) {
  for (int q_rows : kLengths) {
    for (int k_rows : kLengths) {
      const Lengths lengths = {q_rows, k_rows};
      for (int tile_key = 0; tile_key < k_rows; tile_key += kTile) {
        const TileRange range = query_tiles(GetParam(), tile_key, lengths, kTile);
        ASSERT_LT(range.begin, range.end);
        ASSERT_EQ(range.end, (q_rows + kTile - 1) / kTile);
        for (int tile = 0; tile < range.end; ++tile) {
          bool any = false;
          for (int row = tile * kTile; row < std::min(q_rows, (tile + 1) * kTile); ++row) {
            any = any || visible(GetParam(), row, tile_key, lengths);
          }
          ASSERT_EQ(any, tile >= range.begin)
              << "query tile " << tile << " of " << q_rows << " rows, key " << tile_key << " of " << k_rows;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, MaskTest, testing::Values(Mask::kDense, Mask::kCausal));

TEST(RowsThatSee, IsOneBitARow) {
  for (int first : {0, 1, 5, 31, 32, 33, 64, 1000, kNoRow}) {
    for (int row : {0, 1, 32, 64, 96, 999, 2000000000}) {
      const std::uint32_t bits = rows_that_see(first, row);
      for (int c = 0; c < 32; ++c)
        EXPECT_EQ(bits >> c & 1, row + c >= first) << first << " " << row << " " << c;
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

}  // namespace
}  // namespace flashback::shared
