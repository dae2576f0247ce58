// tcgen05.mma kind::f16: D = A B (+ D) over K = 16, everything found from the bits of the descriptors.
//
// With cta_group::2 two CTAs work as one: each has half of A's rows and half of B's columns in its shared
// memory, at the same addresses, and keeps half of D's rows in its tensor memory.
#pragma once

#include <cstdint>

#include "emulator/machine/units/operand_descriptor.h"
#include "emulator/machine/units/transfer.h"

namespace flashback::emulator {

// How the rows of A and D that a CTA has lie in the lanes of its tensor memory.
enum class RowLayout {
  kStraight,   // 128 rows: row m in lane m
  kScattered,  // 64 rows: row m in lane m % 16 + 32 * (m / 16)
  kTwice,  // 64 rows: row m in the lanes m and 64 + m, which have the left and the right half of D's columns
};

// Instruction descriptor of kind::f16.
struct MatrixShape {
  int m = 0, n = 0;  // of both CTAs of a pair together
  bool in_pair = false;
  bool a_is_bf16 = false, b_is_bf16 = false;
  bool a_mn_major = false, b_mn_major = false;

  // What one CTA has: rows of A and D, columns of B, columns of tensor memory for D.
  int rows() const { return in_pair ? m / 2 : m; }
  int columns() const { return in_pair ? n / 2 : n; }
  RowLayout layout() const {
    return rows() == 128 ? RowLayout::kStraight : in_pair ? RowLayout::kTwice : RowLayout::kScattered;
  }
  int d_columns() const { return layout() == RowLayout::kTwice ? n / 2 : n; }
};
// Throws Misuse where a field asks for what kind::f16 does not have or this machine does not do.
MatrixShape decode_instruction_descriptor(std::uint32_t bits, bool in_pair = false);

// Shared-memory descriptor of an operand.
OperandDescriptor decode_operand_descriptor(std::uint64_t bits);

struct MatrixOperation {
  enum class Kind : std::uint8_t { kMultiply, kCommit };
  Issuer by;
  Kind kind = Kind::kMultiply;
  bool in_pair = false;  // cta_group::2
  bool a_in_tensor_memory = false;
  bool accumulate = false;
  std::uint32_t d = 0;  // tensor memory address
  std::uint64_t a = 0;  // descriptor, or tensor memory address
  std::uint64_t b = 0;
  std::uint32_t instruction = 0;  // descriptor
  // Bit l of word w: lane 32 w + l of D is not written. In a pair words 4 to 7 are of the odd CTA.
  std::uint32_t disabled_lanes[8] = {};
  std::uint32_t mbarrier = 0;  // of a commit,
  std::uint16_t ranks = 0;     // which arrives at this offset in these CTAs of the cluster
};

void check(Cta& cta, const MatrixOperation& operation);
void perform(Cta& cta, const MatrixOperation& operation);

}  // namespace flashback::emulator
