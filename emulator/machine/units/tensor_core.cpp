#include "emulator/machine/units/tensor_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/cta_pair.h"
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

MatrixShape decode_instruction_descriptor(std::uint32_t bits, bool in_pair) {
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
  shape.in_pair = in_pair;
  if (in_pair) {
    need(shape.m == 128 || shape.m == 256, "bits 24-28 (M / 16) must be 8 or 16 for cta_group::2");
    need(shape.n >= 16 && shape.n <= 256 && shape.n % 16 == 0,
         "bits 17-22 (N / 8) must be even, 2 to 32, for cta_group::2");
  } else {
    need(shape.m == 64 || shape.m == 128, "bits 24-28 (M / 16) must be 4 or 8 for cta_group::1");
    need(shape.n >= 8 && shape.n <= 256, "bits 17-22 (N / 8) must be 1 to 32");
  }
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

// The (first) lane of tensor memory that holds row m of A or D.
int lane_of_row(RowLayout layout, int m) {
  return layout == RowLayout::kScattered ? m % 16 + 32 * (m / 16) : m;
}

LaneGroups lanes_of(RowLayout layout) {
  return layout == RowLayout::kScattered ? kScattered64 : kAllLaneGroups;
}

// The CTAs that an operation works on: its own, or both of the pair.
struct Workers {
  Cta* cta[2] = {};
  int count = 1;
  Workers(Cta& own, const MatrixOperation& operation) : cta{&own} {
    if (!operation.in_pair) return;
    const CtaPair pair = pair_of(own, "tcgen05.mma");
    cta[0] = &pair.even;
    cta[1] = &pair.odd;
    count = 2;
  }
};

// The rows of A that `cta` has.
void read_rows(Cta& cta, const MatrixOperation& operation, const MatrixShape& shape, RowBlock* rows) {
  const MatrixArithmetic& arithmetic = matrix_arithmetic();
  const RowLayout layout = shape.layout();
  const LaneGroups groups = lanes_of(layout);
  const Half type = half(shape.a_is_bf16);
  if (operation.a_in_tensor_memory) {
    const std::uint32_t column = static_cast<std::uint32_t>(operation.a) & 0xffff;
    arithmetic.rows_from_tensor_memory(type, cta.tensor_memory.column(column), groups, rows);
    return;
  }
  const OperandDescriptor descriptor = decode_operand_descriptor(operation.a);
  constexpr int kHalf = kMatrixLanes / 2;
  if (shape.a_mn_major) {
    alignas(64) std::uint16_t values[kMatrixDepth][kMatrixLanes];
    read_chunks(cta, descriptor, true, kMatrixDepth, shape.rows() / kChunkElements, kOperand,
                [&](int k, int chunk) { return &values[k][lane_of_row(layout, chunk * kChunkElements)]; });
    if (layout == RowLayout::kTwice) {
      for (auto& line : values) std::copy_n(line, kHalf, line + kHalf);
    }
    arithmetic.rows_from_mn_major(type, values, groups, rows);
  } else {
    alignas(64) std::uint16_t values[kMatrixLanes][kMatrixDepth];
    read_chunks(cta, descriptor, false, shape.rows(), kMatrixDepth / kChunkElements, kOperand,
                [&](int m, int chunk) { return &values[lane_of_row(layout, m)][chunk * kChunkElements]; });
    if (layout == RowLayout::kTwice) std::memcpy(values[kHalf], values, sizeof values / 2);
    arithmetic.rows_from_k_major(type, values, groups, rows);
  }
}

// The columns of B that these CTAs have, one after the other.
void read_columns(std::span<Cta* const> ctas, const MatrixOperation& operation, const MatrixShape& shape,
                  ColumnBlock* columns) {
  const MatrixArithmetic& arithmetic = matrix_arithmetic();
  const Half type = half(shape.b_is_bf16);
  const OperandDescriptor descriptor = decode_operand_descriptor(operation.b);
  const int each = shape.columns(), all = each * static_cast<int>(ctas.size());
  if (shape.b_mn_major) {
    alignas(64) std::uint16_t values[kMatrixDepth][kMatrixColumns];
    for (int first = 0; Cta * cta : ctas) {
      read_chunks(*cta, descriptor, true, kMatrixDepth, each / kChunkElements, kOperand,
                  [&](int k, int chunk) { return &values[k][first + chunk * kChunkElements]; });
      first += each;
    }
    arithmetic.columns_from_mn_major(type, values, all, columns);
  } else {
    alignas(64) std::uint16_t values[kMatrixColumns][kMatrixDepth];
    for (int first = 0; Cta * cta : ctas) {
      read_chunks(*cta, descriptor, false, each, kMatrixDepth / kChunkElements, kOperand,
                  [&](int n, int chunk) { return &values[first + n][chunk * kChunkElements]; });
      first += each;
    }
    arithmetic.columns_from_k_major(type, values, all, columns);
  }
}

// Keeps what disabled lanes of D hold.
class DisabledLanes {
 public:
  DisabledLanes(const std::uint32_t* words, TensorMemory::Column* d, int columns) : d_(d), columns_(columns) {
    for (int lane = 0; lane < kMatrixLanes; ++lane) {
      if ((words[lane / 32] >> lane % 32 & 1) != 0) lanes_.push_back(lane);
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

// The rows that `cta` has of D. `blocks`: the columns of B; in the layout kTwice its left and its right half.
void multiply_rows(Cta& cta, const MatrixOperation& operation, const MatrixShape& shape,
                   const ColumnBlock* blocks, const std::uint32_t* disabled) {
  thread_local RowBlock rows;
  read_rows(cta, operation, shape, &rows);
  TensorMemory::Column* d = cta.tensor_memory.column(operation.d & 0xffff);
  const MatrixArithmetic& arithmetic = matrix_arithmetic();
  const auto add = [&] {
    if (shape.layout() == RowLayout::kTwice) {
      arithmetic.multiply_add(rows, blocks[0], operation.accumulate, kFirst64Lanes, d);
      arithmetic.multiply_add(rows, blocks[1], operation.accumulate, kLast64Lanes, d);
    } else {
      arithmetic.multiply_add(rows, blocks[0], operation.accumulate, lanes_of(shape.layout()), d);
    }
  };
  if ((disabled[0] | disabled[1] | disabled[2] | disabled[3]) == 0) {
    add();
    return;
  }
  const DisabledLanes kept(disabled, d, shape.d_columns());
  add();
  kept.restore();
}

// What a CTA's part of a product accesses.
void tell(Cta& cta, const MatrixOperation& operation, const MatrixShape& shape,
          const std::uint32_t* disabled) {
  Observer& observer = *cta.observer();
  const std::uint64_t number = operation.by.operation;
  // Of a scattered layout: the lower half of each quarter.
  const LaneMask lanes = shape.layout() == RowLayout::kScattered ? 0xffffu : kAllLanes;
  const auto columns = [&](std::uint32_t address, int count, Use use) {
    ColumnAccess access{number, &cta, use, address & 0xffff, static_cast<std::uint32_t>(count)};
    for (int w = 0; w < 4; ++w) access.lanes[w] = lanes & ~(use == Use::kRead ? 0 : disabled[w]);
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
    operand(operation.a, shape.a_mn_major, shape.rows());
  }
  operand(operation.b, shape.b_mn_major, shape.columns());
  observer.accessed(
      columns(operation.d, shape.d_columns(), operation.accumulate ? Use::kReadWrite : Use::kWrite));
}

void multiply(Cta& cta, const MatrixOperation& operation) {
  const MatrixShape shape = decode_instruction_descriptor(operation.instruction, operation.in_pair);
  const Workers workers(cta, operation);
  thread_local ColumnBlock blocks[2];
  if (shape.layout() == RowLayout::kTwice) {
    for (int half = 0; half < 2; ++half)
      read_columns({&workers.cta[half], 1}, operation, shape, &blocks[half]);
  } else {
    read_columns({workers.cta, static_cast<std::size_t>(workers.count)}, operation, shape, blocks);
  }
  for (int w = 0; w < workers.count; ++w) {
    const std::uint32_t* disabled = operation.disabled_lanes + 4 * w;
    if (cta.observer() != nullptr) [[unlikely]]
      tell(*workers.cta[w], operation, shape, disabled);
    multiply_rows(*workers.cta[w], operation, shape, blocks, disabled);
  }
}

// Calls f(address) for each mbarrier that a commit arrives at.
template <class F>
void each_mbarrier(const MatrixOperation& commit, F&& f) {
  for (std::uint32_t rest = commit.ranks; rest != 0; rest &= rest - 1) {
    f(on_rank(commit.mbarrier, static_cast<std::uint32_t>(std::countr_zero(rest))));
  }
}

void check_group(const Cta& cta, int group) {
  const int allocated = cta.tensor_memory.group;
  if (allocated == 0 || allocated == group) return;
  throw Misuse(
      fmt::format("tcgen05.mma with cta_group::{}, and rank {} of the cluster has allocated tensor memory "
                  "with cta_group::{}",
                  group, cta.rank(), allocated));
}

void check_columns(Cta& cta, std::uint32_t address, int columns, const char* what) {
  const std::uint32_t first = address & 0xffff;
  if (address >> 16 != 0) {
    throw Misuse(fmt::format("{} at tensor memory address {:#010x}; its lane must be 0", what, address));
  }
  if (!cta.tensor_memory.allocated(first, static_cast<std::uint32_t>(columns))) {
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
    each_mbarrier(operation, [&](std::uint32_t address) { cta.cluster_shared(address, 8, "an mbarrier"); });
    return;
  }
  const MatrixShape shape = decode_instruction_descriptor(operation.instruction, operation.in_pair);
  decode_operand_descriptor(operation.b);
  if (!operation.a_in_tensor_memory) {
    decode_operand_descriptor(operation.a);
  } else if (shape.a_mn_major) {
    throw Misuse("A in tensor memory must be K-major (bit 15 of the instruction descriptor 0)");
  }
  const Workers workers(cta, operation);
  for (int w = 0; w < workers.count; ++w) {
    check_group(*workers.cta[w], operation.in_pair ? 2 : 1);
    check_columns(*workers.cta[w], operation.d, shape.d_columns(), "D");
    if (operation.a_in_tensor_memory)
      check_columns(*workers.cta[w], static_cast<std::uint32_t>(operation.a), kMatrixDepth / 2, "A");
  }
}

void perform(Cta& cta, const MatrixOperation& operation) {
  if (operation.kind == MatrixOperation::Kind::kMultiply) multiply(cta, operation);
  if (cta.observer() != nullptr) [[unlikely]]
    cta.observer()->ended(operation.by.operation);
  if (operation.kind != MatrixOperation::Kind::kCommit) return;
  each_mbarrier(operation, [&](std::uint32_t address) {
    cta.cluster_shared(address, 8, "an mbarrier");  // the CTA may have exited since the issue
    MbarrierAccess(cta.cluster().cta(rank_of(address)), address, user_of(cta, operation.by)).arrive(1);
  });
}

}  // namespace flashback::emulator
