// The suites `backward` and `forward` on the emulator: what they check, and what they do when
// a contender is wrong.
#include "bench/pass_suite.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attention/device_handle.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

constexpr Protocol kTiny = {"tiny", 2, 0, 1, 0, 3, 0, true};
const Cell kCell = {Mask::kCausal, {2, 2, 1, 100, 100, 64}};

std::string peer_file(const std::string& name) {
  return FLASHBACK_BUILD_DIR "/" + name + ".so";
}

struct Where {
  Arch arch;
  Direction direction;
};

class Suite : public ::testing::TestWithParam<Where> {
 protected:
  Suite() {
    flashback_message message;
    if (flashback_device_emulator(std::string(name(GetParam().arch)).c_str(), 2, &device_, &message) !=
        FLASHBACK_OK)
      throw std::runtime_error(message.text);
    ours_ = make_ours(device_);
  }
  ~Suite() override {
    ours_.reset();
    flashback_device_close(device_);
  }

  std::vector<CellResult> measure(const Cell& cell, const std::vector<Contender*>& contenders) {
    PassSuite suite;
    suite.cells = {cell};
    suite.protocols = {kTiny};
    suite.flush_bytes = 1024;
    return measure_passes(*device_->workbench, suite, contenders, nullptr, [](const Cell&) {});
  }

  flashback_device* device_ = nullptr;
  std::unique_ptr<Contender> ours_;
};

Cell cell_for(const Where& where) {
  Cell cell = kCell;
  cell.direction = where.direction;
  return cell;
}

TEST_P(Suite, RightContendersAreCheckedAndTimed) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("naive"), 0, GetParam().direction);
  const std::vector<CellResult> results = measure(cell_for(GetParam()), {ours_.get(), peer.get()});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].wrong(), "");
  ASSERT_EQ(results[0].contenders.size(), 2u);
  EXPECT_EQ(results[0].contenders[0].name, "flashback");
  EXPECT_EQ(results[0].contenders[1].name, "naive");
  for (const ContenderResult& contender : results[0].contenders) {
    ASSERT_TRUE(contender.check.slice);
    for (const auto& [output, verdict] : *contender.check.slice) EXPECT_TRUE(verdict.ok) << output;
    ASSERT_EQ(contender.timings.size(), 1u);
    EXPECT_EQ(contender.timings[0].all().size(), 6u);
    EXPECT_GT(contender.timings[0].median_ms(), 0);
  }
  for (const auto& [output, own] : results[0].contenders[0].check.from_first) {
    EXPECT_EQ(own.tensor, 0) << output;
    EXPECT_EQ(own.block, 0) << output;
  }
  // P and dS in 16 bit on one side only; scores of either are exact but for fp32.
  int outputs = 0;
  for (const auto& [output, far] : results[0].contenders[1].check.from_first) {
    EXPECT_GT(far.tensor, output == "lse" ? 1e-9 : 1e-4) << output;
    EXPECT_LT(far.tensor, output == "lse" ? 1e-6 : kMostTensorDistance) << output;
    EXPECT_GE(far.block, far.tensor) << output;
    ++outputs;
  }
  EXPECT_EQ(outputs, GetParam().direction == Direction::kForward ? 2 : 3);
}

TEST_P(Suite, EveryKindOfCellIsTold) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("naive"), 0, GetParam().direction);
  const Cell plain = cell_for(GetParam());
  Cell window = plain, half = plain, packed = plain, deterministic = plain;
  window.mask = {30, 0};
  half.dtype = Dtype::kF16;
  packed.packed = true;
  packed.shape.batch = 3;
  deterministic.deterministic = true;
  for (const Cell& cell : {window, half, packed, deterministic}) {
    if (cell.deterministic && cell.direction == Direction::kForward) continue;  // it has one order
    const std::vector<CellResult> results = measure(cell, {ours_.get(), peer.get()});
    EXPECT_EQ(results.at(0).wrong(), "");
    EXPECT_TRUE(results[0].contenders[1].check.slice);
  }
}

TEST_P(Suite, WhatWasNotWrittenIsSeenAndNothingIsTimed) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("forgetful"), 0, GetParam().direction);
  const std::vector<CellResult> results = measure(cell_for(GetParam()), {ours_.get(), peer.get()});
  const std::string wrong = results.at(0).wrong();
  const bool forward = GetParam().direction == Direction::kForward;
  const char* const forgotten = forward ? "out" : "dk";
  EXPECT_NE(wrong.find(fmt::format("100: forgetful: {} of the last group of heads", forgotten)),
            std::string::npos)
      << wrong;
  for (const ContenderResult& contender : results[0].contenders) EXPECT_TRUE(contender.timings.empty());
  const Distances& far = results[0].contenders[1].check.from_first;
  EXPECT_TRUE(std::isnan(far.of(forgotten).tensor));
  EXPECT_TRUE(std::isnan(far.of(forgotten).block));
  if (forward) {
    EXPECT_TRUE(std::isnan(far.of("lse").tensor));
    EXPECT_FALSE(results[0].contenders[1].check.slice->of("lse").ok);
  } else {
    EXPECT_LT(far.of("dv").tensor, kMostTensorDistance);
  }
}

TEST_P(Suite, APeerThatRefusesEndsTheSuite) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("refusing"), 0, GetParam().direction);
  try {
    measure(cell_for(GetParam()), {ours_.get(), peer.get()});
    FAIL() << "it ran";
  } catch (const program::Failure& failure) {
    EXPECT_STREQ(failure.what(), "peer refusing: it does nothing on Sundays");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, Suite,
    ::testing::Values(Where{Arch::kSm90, Direction::kBackward}, Where{Arch::kSm90, Direction::kForward},
                      Where{Arch::kSm100, Direction::kBackward}, Where{Arch::kSm100, Direction::kForward}),
    [](const auto& info) { return fmt::format("{}_{}", name(info.param.arch), name(info.param.direction)); });

TEST(Peer, FilesThatAreNoneAreRefused) {
  EXPECT_THROW(open_peer("/nowhere/peer.so", 0, Direction::kBackward), program::Failure);
  for (const Direction direction : {Direction::kBackward, Direction::kForward}) {
    try {
      open_peer(FLASHBACK_BUILD_DIR "/libflashback_emulator.so", 0, direction);
      FAIL() << "it opened";
    } catch (const program::Failure& failure) {
      EXPECT_NE(
          std::string(failure.what()).find(fmt::format("has no function flashback_peer_{}", name(direction))),
          std::string::npos);
      EXPECT_EQ(failure.code(), program::kUsage);
    }
  }
}

}  // namespace
}  // namespace flashback::bench
