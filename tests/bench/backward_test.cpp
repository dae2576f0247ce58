// The suite `backward` on the emulator: what it checks, and what it does when a contender is wrong.
#include "bench/backward.h"

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

class Suite : public ::testing::TestWithParam<const char*> {
 protected:
  Suite() {
    flashback_message message;
    if (flashback_device_emulator(GetParam(), 2, &device_, &message) != FLASHBACK_OK)
      throw std::runtime_error(message.text);
    ours_ = make_ours(device_);
  }
  ~Suite() override {
    ours_.reset();
    flashback_device_close(device_);
  }

  std::vector<CellResult> measure(const Cell& cell, const std::vector<Contender*>& contenders) {
    BackwardSuite suite;
    suite.cells = {cell};
    suite.protocols = {kTiny};
    suite.flush_bytes = 1024;
    return measure_backward(*device_->workbench, suite, contenders, nullptr, [](const Cell&) {});
  }

  flashback_device* device_ = nullptr;
  std::unique_ptr<Contender> ours_;
};

Cell cell_for(const std::string& arch) {
  Cell cell = kCell;
  if (arch == "sm100") cell.shape.kv_heads = cell.shape.heads;
  return cell;
}

TEST_P(Suite, RightContendersAreCheckedAndTimed) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("naive"), 0);
  const std::vector<CellResult> results = measure(cell_for(GetParam()), {ours_.get(), peer.get()});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].wrong(), "");
  ASSERT_EQ(results[0].contenders.size(), 2u);
  EXPECT_EQ(results[0].contenders[0].name, "flashback");
  EXPECT_EQ(results[0].contenders[1].name, "naive");
  for (const ContenderResult& contender : results[0].contenders) {
    ASSERT_TRUE(contender.check.slice);
    EXPECT_TRUE(contender.check.slice->ok());
    ASSERT_EQ(contender.timings.size(), 1u);
    EXPECT_EQ(contender.timings[0].all().size(), 6u);
    EXPECT_GT(contender.timings[0].median_ms(), 0);
  }
  const Distances& own = results[0].contenders[0].check.from_first;
  EXPECT_EQ(own.dq.tensor, 0);
  EXPECT_EQ(own.dv.block, 0);
  // P and dS in 16 bit on one side only.
  const Distances& far = results[0].contenders[1].check.from_first;
  for (const Distance& distance : {far.dq, far.dk, far.dv}) {
    EXPECT_GT(distance.tensor, 1e-4);
    EXPECT_LT(distance.tensor, kMostTensorDistance);
    EXPECT_GE(distance.block, distance.tensor);
  }
}

TEST_P(Suite, EveryKindOfCellIsTold) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("naive"), 0);
  const Cell plain = cell_for(GetParam());
  Cell window = plain, half = plain, packed = plain, deterministic = plain;
  window.mask = {30, 0};
  half.dtype = Dtype::kF16;
  packed.packed = true;
  packed.shape.batch = 3;
  deterministic.deterministic = true;
  for (const Cell& cell : {window, half, packed, deterministic}) {
    const std::vector<CellResult> results = measure(cell, {ours_.get(), peer.get()});
    EXPECT_EQ(results.at(0).wrong(), "");
    EXPECT_TRUE(results[0].contenders[1].check.slice);
  }
}

TEST_P(Suite, WhatWasNotWrittenIsSeenAndNothingIsTimed) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("forgetful"), 0);
  const std::vector<CellResult> results = measure(cell_for(GetParam()), {ours_.get(), peer.get()});
  const std::string wrong = results.at(0).wrong();
  EXPECT_NE(wrong.find("100: forgetful: dk of the last group of heads"), std::string::npos) << wrong;
  for (const ContenderResult& contender : results[0].contenders) EXPECT_TRUE(contender.timings.empty());
  EXPECT_TRUE(std::isnan(results[0].contenders[1].check.from_first.dk.tensor));
  EXPECT_TRUE(std::isnan(results[0].contenders[1].check.from_first.dk.block));
  EXPECT_LT(results[0].contenders[1].check.from_first.dv.tensor, kMostTensorDistance);
}

TEST_P(Suite, APeerThatRefusesEndsTheSuite) {
  const std::unique_ptr<Contender> peer = open_peer(peer_file("refusing"), 0);
  try {
    measure(cell_for(GetParam()), {ours_.get(), peer.get()});
    FAIL() << "it ran";
  } catch (const program::Failure& failure) {
    EXPECT_STREQ(failure.what(), "peer refusing: it does nothing on Sundays");
  }
}

INSTANTIATE_TEST_SUITE_P(Arch, Suite, ::testing::Values("sm90", "sm100"));

TEST(Peer, FilesThatAreNoneAreRefused) {
  EXPECT_THROW(open_peer("/nowhere/peer.so", 0), program::Failure);
  try {
    open_peer(FLASHBACK_BUILD_DIR "/libflashback_emulator.so", 0);
    FAIL() << "it opened";
  } catch (const program::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("has no function flashback_peer_backward"), std::string::npos);
    EXPECT_EQ(failure.code(), program::kUsage);
  }
}

}  // namespace
}  // namespace flashback::bench
