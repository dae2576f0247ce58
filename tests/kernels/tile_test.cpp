// Swizzle, descriptors and rings against independent statements of the same facts.
#include <gtest/gtest.h>

#include <set>

#include "kernels/tile/descriptor.h"
#include "kernels/tile/operand.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/swizzle.h"

namespace flashback::tile {
namespace {

using shared::Dtype;

TEST(Swizzle, Of128ByteRowsMovesChunksByTheRow) {
  for (std::uint32_t row = 0; row < 128; ++row) {
    for (std::uint32_t chunk = 0; chunk < 8; ++chunk) {
      EXPECT_EQ(swizzle128(row * 128 + chunk * 16), row * 128 + (chunk ^ row % 8) * 16);
    }
  }
}

TEST(Swizzle, Of64ByteRowsMovesChunksByEverySecondRow) {
  for (std::uint32_t row = 0; row < 128; ++row) {
    for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
      EXPECT_EQ(swizzle64(row * 64 + chunk * 16), row * 64 + (chunk ^ row / 2 % 4) * 16);
    }
  }
}

TEST(OperandTile, ChunksCoverTheTileOnce) {
  std::set<std::uint32_t> offsets;
  for (int row = 0; row < 128; ++row) {
    for (int chunk = 0; chunk < 8; ++chunk) offsets.insert(OperandTile<128>::chunk(row, chunk));
  }
  EXPECT_EQ(offsets.size(), 128u * 8);
  EXPECT_EQ(*offsets.rbegin(), static_cast<std::uint32_t>(OperandTile<128>::kBytes) - kChunkBytes);
}

// The constants that compiled sm_100a attention kernels of others contain, which are known to run right.
TEST(SharedDescriptor, IsWhatKnownKernelsContain) {
  EXPECT_EQ(shared_descriptor(Major::kInner, 128, 16384), 0x4000'4040'0001'0000u);
  EXPECT_EQ(shared_descriptor(Major::kOwn, 64, 16384), 0x4000'4040'0000'0000u);
  EXPECT_EQ(shared_descriptor(Major::kOwn, 128, 16384), 0x4000'4040'0400'0000u);
  EXPECT_EQ(descriptor_step(Major::kInner), 2u);
  EXPECT_EQ(descriptor_step(Major::kOwn), 128u);
  EXPECT_EQ(kTensorMemoryStep, 8u);
}

TEST(SharedDescriptor, AddressCountsSixteenBytes) {
  EXPECT_EQ(descriptor_address(0x400), 0x40u);
  EXPECT_EQ(descriptor_address(0x3fff0), 0x3fffu);
}

TEST(InstructionDescriptor, IsWhatKnownKernelsContain) {
  EXPECT_EQ(instruction_descriptor(Dtype::kF16, 128, 128, Major::kInner, Major::kInner), 0x08200010u);
  EXPECT_EQ(instruction_descriptor(Dtype::kF16, 128, 64, Major::kInner, Major::kOwn), 0x08110010u);
  EXPECT_EQ(instruction_descriptor(Dtype::kF16, 128, 64, Major::kOwn, Major::kOwn), 0x08118010u);
  EXPECT_EQ(instruction_descriptor(Dtype::kBf16, 128, 128, Major::kInner, Major::kInner), 0x08200490u);
  EXPECT_EQ(instruction_descriptor(Dtype::kBf16, 128, 64, Major::kInner, Major::kOwn), 0x08110490u);
  EXPECT_EQ(instruction_descriptor(Dtype::kBf16, 128, 64, Major::kOwn, Major::kOwn), 0x08118490u);
}

TEST(RingPosition, WalksSlotsAndTurnsParityEachRound) {
  RingPosition<2> two;
  RingPosition<1> one;
  for (std::uint32_t i = 0; i < 9; ++i) {
    EXPECT_EQ(two.slot, static_cast<int>(i % 2));
    EXPECT_EQ(two.full(), i / 2 % 2);
    EXPECT_EQ(two.empty(), 1 - i / 2 % 2);
    EXPECT_EQ(one.slot, 0);
    EXPECT_EQ(one.full(), i % 2);
    two.advance();
    one.advance();
  }
}

}  // namespace
}  // namespace flashback::tile
