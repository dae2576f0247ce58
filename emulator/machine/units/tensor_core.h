// tcgen05.mma kind::f16, cta_group::1: D = A B (+ D) over K = 16, everything found from the bits of the
// descriptors.
#pragma once

#include <cstdint>

#include "emulator/machine/units/transfer.h"

namespace flashback::emulator {

// Instruction descriptor of kind::f16.
struct MatrixShape {
  int m = 0, n = 0;
  bool a_is_bf16 = false, b_is_bf16 = false;
  bool a_mn_major = false, b_mn_major = false;
};
// Throws Misuse where a field asks for what kind::f16 does not have or this machine does not do.
MatrixShape decode_instruction_descriptor(std::uint32_t bits);

// Shared-memory descriptor of an operand.
struct OperandDescriptor {
  std::uint32_t start = 0;          // byte address
  std::uint32_t leading_bytes = 0;  // LBO
  std::uint32_t stride_bytes = 0;   // SBO
  std::uint32_t pattern_bytes = 0;  // width of the swizzle pattern: 16 (none), 32, 64, 128
};
OperandDescriptor decode_operand_descriptor(std::uint64_t bits);

// Address of the 16-byte chunk that holds elements [8 * chunk, 8 * chunk + 8) of line `line`: in K-major
// layout a line is a row of the operand and chunks run along K; in MN-major layout a line is one k and chunks
// run along M or N.
std::uint32_t chunk_address(const OperandDescriptor& descriptor, bool mn_major, int line, int chunk);

struct MatrixOperation {
  enum class Kind : std::uint8_t { kMultiply, kCommit };
  Issuer by;
  Kind kind = Kind::kMultiply;
  bool a_in_tensor_memory = false;
  bool accumulate = false;
  std::uint32_t d = 0;  // tensor memory address
  std::uint64_t a = 0;  // descriptor, or tensor memory address
  std::uint64_t b = 0;
  std::uint32_t instruction = 0;         // descriptor
  std::uint32_t disabled_lanes[4] = {};  // bit l of word w: lane 32 w + l of D is not written
  std::uint32_t mbarrier = 0;            // of a commit
};

void check(Cta& cta, const MatrixOperation& operation);
void perform(Cta& cta, const MatrixOperation& operation);

}  // namespace flashback::emulator
