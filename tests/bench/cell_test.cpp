#include "bench/cell.h"

#include <gtest/gtest.h>

#include <set>

#include "program/failure.h"

namespace flashback::bench {
namespace {

TEST(Cells, AreTheTwentyFour) {
  const std::vector<Cell> cells = chosen_cells("");
  ASSERT_EQ(cells.size(), 24u);
  EXPECT_EQ(name(cells.front()), "dense mha 1024");
  EXPECT_EQ(name(cells.back()), "causal gqa 32768");
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.shape.batch * cell.shape.seqlen_q, 65536);
    EXPECT_EQ(cell.shape.seqlen_q, cell.shape.seqlen_k);
    EXPECT_EQ(cell.shape.heads, 32);
    EXPECT_EQ(cell.shape.head_dim, 64);
    EXPECT_EQ(cell.dtype, Dtype::kBf16);
    EXPECT_FALSE(cell.packed || cell.deterministic);
  }
}

TEST(Cells, CountHalfUnderACausalMaskAndWhatAWindowShows) {
  const Shape shape = {2, 32, 32, 32768, 32768, 64};
  const double dense = 10.0 * 64 * 32768 * 32768 * 64;
  EXPECT_DOUBLE_EQ(flop({Mask::kDense, shape}), dense);
  EXPECT_DOUBLE_EQ(flop({Mask::kCausal, shape}), dense / 2);
  // The first 1024 rows see 1 to 1024 keys, the others 1025.
  EXPECT_DOUBLE_EQ(flop({Mask{1024, 0}, shape}), 10.0 * 64 * 64 * (1024 * 1025 / 2 + 31744.0 * 1025));
  // The forward pass has two products and not five.
  Cell forward = {Mask::kDense, shape};
  forward.direction = Direction::kForward;
  EXPECT_DOUBLE_EQ(flop(forward), 0.4 * dense);
  // Rows that stand before the first key see none.
  EXPECT_DOUBLE_EQ(flop({Mask{1, 0}, {1, 1, 1, 4, 2, 64}}), 10.0 * 64 * 3);
}

TEST(Cells, AreChosenByWords) {
  EXPECT_EQ(chosen_cells("causal").size(), 12u);
  EXPECT_EQ(chosen_cells("1k,32768").size(), 8u);
  EXPECT_EQ(chosen_cells("default,deterministic,mha,4k").size(), 4u);
  const std::vector<Cell> one = chosen_cells("causal,gqa,4k");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(name(one[0]), "causal gqa 4096");
  EXPECT_EQ(one[0].shape.kv_heads, 8);
  const std::vector<Cell> other = chosen_cells("window,mqa,128,d128,fp16,packed,deterministic");
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(name(other[0]), "window mqa 128 d128 fp16 packed deterministic");
  EXPECT_EQ(other[0].mask, (Mask{1024, 0}));
  EXPECT_EQ(other[0].shape.batch, 512);
  EXPECT_EQ(other[0].shape.heads, 16);
  EXPECT_EQ(other[0].shape.kv_heads, 1);
  EXPECT_EQ(other[0].shape.head_dim, 128);
  EXPECT_EQ(chosen_cells("1k,4k,16k", Direction::kForward).at(11).direction, Direction::kForward);
  EXPECT_THROW(chosen_cells("1k,deterministic", Direction::kForward), program::Failure);
  for (const char* words : {"3k", "causal,", ",", "fp8", "128k"})
    EXPECT_THROW(chosen_cells(words), program::Failure) << words;
}

TEST(Cells, OfTheHeadlineAndOfTheSweepAreAllDifferent) {
  for (const auto& [cells, count] : {std::pair{headline_cells(), 7u}, std::pair{sweep_cells(), 124u}}) {
    std::set<std::string> names;
    for (const Cell& cell : cells) names.insert(name(cell));
    EXPECT_EQ(cells.size(), count);
    EXPECT_EQ(names.size(), count);
  }
}

}  // namespace
}  // namespace flashback::bench
