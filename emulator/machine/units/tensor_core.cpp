#include "emulator/machine/units/tensor_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/cta.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/machine/units/matrix_arithmetic.h"
#include "emulator/machine/units/operand_chunks.h"

namespace flashback::emulator {
namespace {

std::uint64_t field(std::uint64_t bits, int from, int to) {
  return bits >> from & ((std::uint64_t{1} << (to - from + 1)) - 1);
}

void require(bool holds, std::uint64_t bits, const char* descriptor, const char* rule) {
  if (!holds) throw Misuse(fmt::format("the {} descriptor {:#x}: {}", descriptor, bits, rule));
}

}  // namespace

MatrixShape decode_instruction_descriptor(std::uint32_t bits) {
  const auto need = [&](bool holds, const char* rule) { require(holds, bits, "instruction", rule); };
  need(field(bits, 0, 2) == 0, "bits 0-2 ask for sparsity, which this machine does not have");
  need(field(bits, 3, 3) == 0, "bit 3 asks for saturation, which kind::f16 does not have");
  need(field(bits, 4, 5) == 1, "bits 4-5, the type of D, must be 1 (F32); this machine has no other");
  const std::uint64_t a_type = field(bits, 7, 9), b_type = field(bits, 10, 12);
  need(a_type <= 1 && b_type <= 1, "bits 7-9 and 10-12, the types of A and B, must be 0 (F16) or 1 (BF16)");
  need(field(bits, 13, 14) == 0, "bits 13-14 ask for negation, which this machine does not have");
  need(field(bits, 6, 6) == 0 && field(bits, 23, 23) == 0 && field(bits, 29, 29) == 0,
       "bits 6, 23 and 29 are reserved and must be 0");
  need(field(bits, 30, 31) == 0, "bits 30-31 belong to .ws and must be 0");
  MatrixShape shape;
  shape.m = static_cast<int>(field(bits, 24, 28)) * 16;
  shape.n = static_cast<int>(field(bits, 17, 22)) * 8;
  need(shape.m == 64 || shape.m == 128, "bits 24-28 (M / 16) must be 4 or 8 for cta_group::1");
  need(shape.n >= 8 && shape.n <= 256, "bits 17-22 (N / 8) must be 1 to 32");
  shape.a_is_bf16 = a_type == 1;
  shape.b_is_bf16 = b_type == 1;
  shape.a_mn_major = field(bits, 15, 15) != 0;
  shape.b_mn_major = field(bits, 16, 16) != 0;
  return shape;
}

OperandDescriptor decode_operand_descriptor(std::uint64_t bits) {
  const auto need = [&](bool holds, const char* rule) { require(holds, bits, "shared-memory", rule); };
  need(field(bits, 46, 48) == 1, "bits 46-48 must be 1");
  need(field(bits, 49, 51) == 0, "bits 49-51, the base offset, must be 0 on this machine");
  need(field(bits, 52, 52) == 0,
       "bit 52 asks for absolute leading offsets, which this machine does not have");
  need(field(bits, 14, 15) == 0 && field(bits, 30, 31) == 0 && field(bits, 53, 60) == 0,
       "bits 14-15, 30-31 and 53-60 must be 0");
  OperandDescriptor descriptor;
  switch (field(bits, 61, 63)) {
    case 0:
      descriptor.pattern_bytes = 16;
      break;
    case 2:
      descriptor.pattern_bytes = 128;
      break;
    case 4:
      descriptor.pattern_bytes = 64;
      break;
    case 6:
      descriptor.pattern_bytes = 32;
      break;
    default:
      need(false, "bits 61-63, the swizzle, must be 0 (none), 2 (128 bytes), 4 (64) or 6 (32)");
  }
  descriptor.start = static_cast<std::uint32_t>(field(bits, 0, 13)) << 4;
  descriptor.leading_bytes = static_cast<std::uint32_t>(field(bits, 16, 29)) << 4;
  descriptor.stride_bytes = static_cast<std::uint32_t>(field(bits, 32, 45)) << 4;
  return descriptor;
}

namespace {

Half half(bool is_bf16) {
  return is_bf16 ? Half::kBf16 : Half::kF16;
}

constexpr const char* kOperand = "an operand of tcgen05.mma";

// The lane of tensor memory that holds row m of A or D.
int lane_of_row(const MatrixShape& shape, int m) {
  return shape.m == 128 ? m : m % 16 + 32 * (m / 16);
}

LaneGroups lanes_of(const MatrixShape& shape) {
  return shape.m == 128 ? kAllLaneGroups : kScattered64;
}

void read_rows(Cta& cta, const MatrixOperation& operation, const MatrixShape& shape, RowBlock* rows) {
  const MatrixArithmetic& arithmetic = matrix_arithmetic();
  const LaneGroups groups = lanes_of(shape);
  const Half type = half(shape.a_is_bf16);
  if (operation.a_in_tensor_memory) {
    const std::uint32_t column = static_cast<std::uint32_t>(operation.a) & 0xffff;
    arithmetic.rows_from_tensor_memory(type, cta.tensor_memory.column(column), groups, rows);
    return;
  }
  const OperandDescriptor descriptor = decode_operand_descriptor(operation.a);
  if (shape.a_mn_major) {
    alignas(64) std::uint16_t values[kMatrixDepth][kMatrixLanes];
    read_chunks(cta, descriptor, true, kMatrixDepth, shape.m / kChunkElements, kOperand,
                [&](int k, int chunk) { return &values[k][lane_of_row(shape, chunk * kChunkElements)]; });
    arithmetic.rows_from_mn_major(type, values, groups, rows);
  } else {
    alignas(64) std::uint16_t values[kMatrixLanes][kMatrixDepth];
    read_chunks(cta, descriptor, false, shape.m, kMatrixDepth / kChunkElements, kOperand,
                [&](int m, int chunk) { return &values[lane_of_row(shape, m)][chunk * kChunkElements]; });
    arithmetic.rows_from_k_major(type, values, groups, rows);
  }
}

void read_columns(Cta& cta, const MatrixOperation& operation, const MatrixShape& shape,
                  ColumnBlock* columns) {
  const MatrixArithmetic& arithmetic = matrix_arithmetic();
  const Half type = half(shape.b_is_bf16);
  const OperandDescriptor descriptor = decode_operand_descriptor(operation.b);
  if (shape.b_mn_major) {
    alignas(64) std::uint16_t values[kMatrixDepth][kMatrixColumns];
    read_chunks(cta, descriptor, true, kMatrixDepth, shape.n / kChunkElements, kOperand,
                [&](int k, int chunk) { return &values[k][chunk * kChunkElements]; });
    arithmetic.columns_from_mn_major(type, values, shape.n, columns);
  } else {
    alignas(64) std::uint16_t values[kMatrixColumns][kMatrixDepth];
    read_chunks(cta, descriptor, false, shape.n, kMatrixDepth / kChunkElements, kOperand,
                [&](int n, int chunk) { return &values[n][chunk * kChunkElements]; });
    arithmetic.columns_from_k_major(type, values, shape.n, columns);
  }
}

// Keeps what disabled lanes of D hold.
class DisabledLanes {
 public:
  DisabledLanes(const MatrixOperation& operation, TensorMemory::Column* d, int columns)
      : d_(d), columns_(columns) {
    for (int lane = 0; lane < kMatrixLanes; ++lane) {
      if ((operation.disabled_lanes[lane / 32] >> lane % 32 & 1) != 0) lanes_.push_back(lane);
    }
    for (int c = 0; c < columns_; ++c) {
      for (const int lane : lanes_) kept_.push_back(d_[c][lane]);
    }
  }
  void restore() const {
    auto kept = kept_.begin();
    for (int c = 0; c < columns_; ++c) {
      for (const int lane : lanes_) d_[c][lane] = *kept++;
    }
  }

 private:
  TensorMemory::Column* d_;
  int columns_;
  std::vector<int> lanes_;
  std::vector<std::uint32_t> kept_;
};

void multiply(Cta& cta, const MatrixOperation& operation) {
  const MatrixShape shape = decode_instruction_descriptor(operation.instruction);
  thread_local RowBlock rows;
  thread_local ColumnBlock columns;
  read_rows(cta, operation, shape, &rows);
  read_columns(cta, operation, shape, &columns);
  TensorMemory::Column* d = cta.tensor_memory.column(operation.d & 0xffff);
  const auto add = [&] {
    matrix_arithmetic().multiply_add(rows, columns, operation.accumulate, lanes_of(shape), d);
  };
  const std::uint32_t* disabled = operation.disabled_lanes;
  if ((disabled[0] | disabled[1] | disabled[2] | disabled[3]) == 0) {
    add();
    return;
  }
  const DisabledLanes kept(operation, d, shape.n);
  add();
  kept.restore();
}

// What a product accesses.
void tell(Cta& cta, const MatrixOperation& operation) {
  Observer& observer = *cta.observer();
  const std::uint64_t number = operation.by.operation;
  const MatrixShape shape = decode_instruction_descriptor(operation.instruction);
  // Lanes of a scattered M = 64: the lower half of each quarter.
  const LaneMask lanes = shape.m == 128 ? kAllLanes : 0xffffu;
  const auto columns = [&](std::uint32_t address, int count, Use use) {
    ColumnAccess access{number, &cta, use, address & 0xffff, static_cast<std::uint32_t>(count)};
    for (int w = 0; w < 4; ++w) {
      access.lanes[w] = lanes & ~(use == Use::kRead ? 0 : operation.disabled_lanes[w]);
    }
    return access;
  };
  const auto operand = [&](std::uint64_t bits, bool mn_major, int extent) {
    const int lines = mn_major ? kMatrixDepth : extent, elements = mn_major ? extent : kMatrixDepth;
    Footprint footprint;
    footprint.add_operand(decode_operand_descriptor(bits), mn_major, lines, elements / kChunkElements);
    footprint.tell(observer, number, &cta, Use::kRead);
  };
  if (operation.a_in_tensor_memory) {
    observer.accessed(columns(static_cast<std::uint32_t>(operation.a), kMatrixDepth / 2, Use::kRead));
  } else {
    operand(operation.a, shape.a_mn_major, shape.m);
  }
  operand(operation.b, shape.b_mn_major, shape.n);
  observer.accessed(columns(operation.d, shape.n, operation.accumulate ? Use::kReadWrite : Use::kWrite));
}

void check_columns(Cta& cta, std::uint32_t address, int columns, const char* what) {
  const std::uint32_t first = address & 0xffff;
  if (address >> 16 != 0) {
    throw Misuse(fmt::format("{} at tensor memory address {:#010x}; its lane must be 0", what, address));
  }
  if (!cta.tensor_memory.reachable(first, static_cast<std::uint32_t>(columns))) {
    throw Misuse(fmt::format("{} in columns {} to {} of tensor memory, which are not all allocated", what,
                             first, first + static_cast<std::uint32_t>(columns) - 1));
  }
}

}  // namespace

void check(Cta& cta, const MatrixOperation& operation) {
  if (operation.kind == MatrixOperation::Kind::kCommit) {
    if (operation.mbarrier % 8 != 0) {
      throw Misuse(fmt::format("an mbarrier at shared address {:#x}, which is not a multiple of 8",
                               operation.mbarrier));
    }
    cta.shared(operation.mbarrier, 8, "an mbarrier");
    return;
  }
  const MatrixShape shape = decode_instruction_descriptor(operation.instruction);
  check_columns(cta, operation.d, shape.n, "D");
  decode_operand_descriptor(operation.b);
  if (operation.a_in_tensor_memory) {
    check_columns(cta, static_cast<std::uint32_t>(operation.a), kMatrixDepth / 2, "A");
    if (shape.a_mn_major)
      throw Misuse("A in tensor memory must be K-major (bit 15 of the instruction descriptor 0)");
  } else {
    decode_operand_descriptor(operation.a);
  }
}

void perform(Cta& cta, const MatrixOperation& operation) {
  if (operation.kind == MatrixOperation::Kind::kCommit) {
    if (cta.observer() != nullptr) [[unlikely]]
      cta.observer()->ended(operation.by.operation);
    MbarrierAccess(cta, operation.mbarrier, user_of(cta, operation.by)).arrive(1);
  } else {
    if (cta.observer() != nullptr) [[unlikely]]
      tell(cta, operation);
    multiply(cta, operation);
    if (cta.observer() != nullptr) [[unlikely]]
      cta.observer()->ended(operation.by.operation);
  }
}

}  // namespace flashback::emulator
