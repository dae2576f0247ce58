#include "bench/cell.h"

#include <gtest/gtest.h>

#include "program/failure.h"

namespace flashback::bench {
namespace {

TEST(Cells, AreTheTwentyFour) {
  const std::vector<Cell> cells = all_cells();
  ASSERT_EQ(cells.size(), 24u);
  EXPECT_EQ(name(cells.front()), "dense mha 1024");
  EXPECT_EQ(name(cells.back()), "causal gqa 32768");
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.shape.batch * cell.shape.seqlen_q, 65536);
    EXPECT_EQ(cell.shape.seqlen_q, cell.shape.seqlen_k);
    EXPECT_EQ(cell.shape.heads, 32);
    EXPECT_EQ(cell.shape.kv_heads, cell.grouped() ? 8 : 32);
  }
}

TEST(Cells, CountHalfUnderACausalMask) {
  const Cell dense = {Mask::kDense, {2, 32, 32, 32768, 32768, 64}};
  EXPECT_DOUBLE_EQ(flop(dense), 10.0 * 64 * 32768 * 32768 * 64);
  EXPECT_DOUBLE_EQ(flop({Mask::kCausal, dense.shape}), flop(dense) / 2);
}

TEST(Cells, AreChosenByWords) {
  EXPECT_EQ(chosen_cells("").size(), 24u);
  EXPECT_EQ(chosen_cells("causal").size(), 12u);
  EXPECT_EQ(chosen_cells("1k,32768").size(), 8u);
  const std::vector<Cell> one = chosen_cells("causal,gqa,4k");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(name(one[0]), "causal gqa 4096");
  for (const char* words : {"3k", "causal,", ",", "fp8"})
    EXPECT_THROW(chosen_cells(words), program::Failure) << words;
}

}  // namespace
}  // namespace flashback::bench
