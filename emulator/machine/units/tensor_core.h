// tcgen05.mma kind::f16, cta_group::1: D = A B (+ D) over K = 16, everything found from the bits of the
// descriptors.
#pragma once

#include <cstdint>

#include "emulator/machine/units/operand_descriptor.h"
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
OperandDescriptor decode_operand_descriptor(std::uint64_t bits);

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
