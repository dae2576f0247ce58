#include "emulator/machine/units/warp_products.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "emulator/machine/cta.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/machine/units/operand_chunks.h"

namespace flashback::emulator {

std::int64_t WarpProductShape::packed() const {
  return n | (type == Half::kF16) << 9 | a_in_registers << 10 | a_mn_major << 11 | b_mn_major << 12 |
         negative << 13 | d_is_f16 << 14 | (type == Half::kTf32) << 15;
}

WarpProductShape WarpProductShape::of(const Step& step) {
  const std::int64_t bits = step.immediate;
  const auto bit = [&](int at) { return (bits >> at & 1) != 0; };
  return {static_cast<int>(bits & 0x1ff),
          bit(15)  ? Half::kTf32
          : bit(9) ? Half::kF16
                   : Half::kBf16,
          bit(10),
          bit(11),
          bit(12),
          bit(13),
          bit(14)};
}

OperandDescriptor decode_warpgroup_descriptor(std::uint64_t bits) {
  const auto field = [&](int from, int to) {
    return bits >> from & ((std::uint64_t{1} << (to - from + 1)) - 1);
  };
  const auto need = [&](bool holds, const char* rule) {
    if (!holds) throw Misuse(fmt::format("the matrix descriptor {:#x}: {}", bits, rule));
  };
  need(field(14, 15) == 0 && field(30, 31) == 0 && field(46, 48) == 0 && field(52, 61) == 0,
       "bits 14-15, 30-31, 46-48 and 52-61 must be 0");
  need(field(49, 51) == 0, "bits 49-51, the base offset, must be 0 on this machine");
  constexpr std::uint32_t kPatternBytes[] = {16, 128, 64, 32};  // by swizzle mode
  return {.start = static_cast<std::uint32_t>(field(0, 13)) << 4,
          .leading_bytes = static_cast<std::uint32_t>(field(16, 29)) << 4,
          .stride_bytes = static_cast<std::uint32_t>(field(32, 45)) << 4,
          .pattern_bytes = kPatternBytes[field(62, 63)]};
}

namespace {

constexpr int kRows = 16;  // of a warp

// The arithmetic is the same for A B and its transpose, and knows a wide operand (lanes) and a narrow one
// (columns). Here B is the wide one, up to 128 columns of the product at a time, and the warp's 16 rows of A
// are the narrow one: then D comes out row by row, d[row][column].
using Rows = std::uint32_t[kRows][kMatrixLanes];

// The values of B as they leave shared memory. Columns up to the next multiple of 16 are zeros.
struct alignas(64) WideValues {
  union {
    std::uint16_t k_major[kMatrixLanes][kMatrixDepth];
    std::uint16_t mn_major[kMatrixDepth][kMatrixLanes];
  };
};

int groups_of_lanes(int columns) {
  return (columns + 15) / 16;
}

constexpr const char* kOperand = "an operand of wgmma.mma_async";

// The operand without its first elements along M or N, a multiple of 16.
OperandDescriptor from_element(OperandDescriptor descriptor, bool mn_major, int element) {
  const int line = mn_major ? 0 : element, chunk = mn_major ? element / kChunkElements : 0;
  descriptor.start = plain_address(descriptor, mn_major, line, chunk);
  return descriptor;
}

// `columns` columns of B.
void read_b(Cta& cta, const OperandDescriptor& descriptor, bool mn_major, int columns, WideValues* values) {
  const int rest = 16 * groups_of_lanes(columns) - columns;  // 0 or 8
  if (mn_major) {
    read_chunks(cta, descriptor, true, kMatrixDepth, columns / kChunkElements, kOperand,
                [&](int k, int chunk) { return &values->mn_major[k][chunk * kChunkElements]; });
    for (int k = 0; k < kMatrixDepth && rest != 0; ++k) std::memset(&values->mn_major[k][columns], 0, 16);
  } else {
    read_chunks(cta, descriptor, false, columns, kMatrixDepth / kChunkElements, kOperand,
                [&](int c, int chunk) { return &values->k_major[c][chunk * kChunkElements]; });
    std::memset(values->k_major[columns], 0, static_cast<std::size_t>(rest) * sizeof values->k_major[0]);
  }
}

// A prepared B, with what it was made of: the four warps of a warpgroup, and often other warpgroups, multiply
// with the same B.
struct PreparedB {
  Half type = Half::kBf16;
  bool mn_major = false;
  int columns = 0;
  WideValues values;
  RowBlock block;

  bool is_of(Half t, bool mn, int n, const WideValues& v) const {
    if (type != t || mn_major != mn || columns != n) return false;
    const std::size_t lanes = 16 * static_cast<std::size_t>(groups_of_lanes(n));
    if (!mn) return std::memcmp(v.k_major, values.k_major, lanes * sizeof v.k_major[0]) == 0;
    for (int k = 0; k < kMatrixDepth; ++k) {
      if (std::memcmp(v.mn_major[k], values.mn_major[k], lanes * sizeof v.mn_major[0][0]) != 0) return false;
    }
    return true;
  }
  void prepare(Half t, bool mn, int n, const WideValues& v) {
    type = t, mn_major = mn, columns = n, values = v;
    const auto groups = static_cast<LaneGroups>((1 << groups_of_lanes(n)) - 1);
    const MatrixArithmetic& arithmetic = matrix_arithmetic();
    if (mn) {
      arithmetic.rows_from_mn_major(t, values.mn_major, groups, &block);
    } else {
      arithmetic.rows_from_k_major(t, values.k_major, groups, &block);
    }
  }
};

const RowBlock& prepared_b(Cta& cta, const WarpProduct& product, const WarpProductShape& shape, int first,
                           int columns) {
  constexpr std::size_t kPlaces = 32;  // a tile's products of one warp, and more
  thread_local const auto places = std::make_unique<std::array<PreparedB, kPlaces>>();
  WideValues values;
  read_b(cta, from_element(decode_warpgroup_descriptor(product.b), shape.b_mn_major, first), shape.b_mn_major,
         columns, &values);
  const std::uint64_t key = (product.b + static_cast<std::uint64_t>(first)) * 2 + shape.b_mn_major;
  PreparedB& place = (*places)[key * 0x9e3779b97f4a7c15 >> 59];
  if (!place.is_of(shape.type, shape.b_mn_major, columns, values)) {
    place.prepare(shape.type, shape.b_mn_major, columns, values);
  }
  return place.block;
}

// The warp's rows of A: lane 4 g + q has in its four registers the pairs of k from 2 q on of row g, the same
// of row g + 8, and for both the pairs from 2 q + 8 on.
void read_a_registers(const Warp& warp, const Slot* registers, std::uint16_t (*values)[kMatrixDepth]) {
  for (int r = 0; r < 4; ++r) {
    const auto* words = warp.lanes<std::uint32_t>(registers[r]);
    for (int g = 0; g < 8; ++g) std::memcpy(&values[g + r % 2 * 8][r / 2 * 8], words + 4 * g, 16);
  }
}

void read_a(Warp& warp, const WarpProduct& product, const WarpProductShape& shape, ColumnBlock* block) {
  const MatrixArithmetic& arithmetic = matrix_arithmetic();
  const std::uint16_t sign = shape.negative ? 0x8000 : 0;
  const auto own_rows = [&] {
    return from_element(decode_warpgroup_descriptor(product.a), shape.a_mn_major, warp.index() % 4 * kRows);
  };
  if (shape.a_mn_major) {
    alignas(64) std::uint16_t values[kMatrixDepth][kMatrixColumns];
    read_chunks(warp.cta(), own_rows(), true, kMatrixDepth, kRows / kChunkElements, kOperand,
                [&](int k, int chunk) { return &values[k][chunk * kChunkElements]; });
    for (auto& of_k : values) {
      for (int m = 0; m < kRows; ++m) of_k[m] ^= sign;
    }
    arithmetic.columns_from_mn_major(shape.type, values, kRows, block);
    return;
  }
  alignas(64) std::uint16_t values[kRows][kMatrixDepth];
  if (shape.a_in_registers) {
    read_a_registers(warp, product.step->list + shape.d_registers(), values);
  } else {
    read_chunks(warp.cta(), own_rows(), false, kRows, kMatrixDepth / kChunkElements, kOperand,
                [&](int m, int chunk) { return &values[m][chunk * kChunkElements]; });
  }
  const int step = shape.type == Half::kTf32 ? 2 : 1;  // the sign stands in the high half of a word
  for (auto& row : values) {
    for (int i = step - 1; i < kMatrixDepth; i += step) row[i] ^= sign;
  }
  arithmetic.columns_from_k_major(shape.type, values, kRows, block);
}

// Of D, lane 4 g + q has in registers 4 j .. 4 j + 3 the columns 8 j + 2 q and the next of row g, then of row
// g + 8. So eight neighbours of a row are four lanes of one register and four of the next.
void load_d(const Warp& warp, const Slot* registers, int columns, Rows d) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int r = 0; r < columns / 2; r += 2) {
    const auto* even = warp.lanes<std::uint32_t>(registers[r]);
    const auto* odd = warp.lanes<std::uint32_t>(registers[r + 1]);
    for (int g = 0; g < 8; ++g) {
      const __m256i both = _mm256_set_m128i(_mm_loadu_si128(reinterpret_cast<const __m128i*>(odd + 4 * g)),
                                            _mm_loadu_si128(reinterpret_cast<const __m128i*>(even + 4 * g)));
      std::uint32_t* to = &d[g + r / 2 % 2 * 8][r / 4 * 8];
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(both, order));
    }
  }
}

void store_d(Warp& warp, const Slot* registers, int columns, const Rows d) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  for (int r = 0; r < columns / 2; r += 2) {
    auto* even = warp.lanes<std::uint32_t>(registers[r]);
    auto* odd = warp.lanes<std::uint32_t>(registers[r + 1]);
    for (int g = 0; g < 8; ++g) {
      const std::uint32_t* from = &d[g + r / 2 % 2 * 8][r / 4 * 8];
      const __m256i both =
          _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), order);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(even + 4 * g), _mm256_castsi256_si128(both));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(odd + 4 * g), _mm256_extracti128_si256(both, 1));
    }
  }
}

// In fp16, lane 4 g + q has in register 2 j + h the columns 8 j + 2 q and the next of row g + 8 h: eight
// neighbours of a row are four lanes of one register.
void load_half_d(const Warp& warp, const Slot* registers, int columns, Rows d) {
  for (int r = 0; r < columns / 4; ++r) {
    const auto* words = warp.lanes<std::uint32_t>(registers[r]);
    for (int g = 0; g < 8; ++g) {
      const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words + 4 * g));
      _mm256_storeu_ps(reinterpret_cast<float*>(&d[g + r % 2 * 8][r / 2 * 8]), _mm256_cvtph_ps(halves));
    }
  }
}

// A result that rounds to zero is +0, as the zero of a step is.
void store_half_d(Warp& warp, const Slot* registers, int columns, const Rows d) {
  for (int r = 0; r < columns / 4; ++r) {
    auto* words = warp.lanes<std::uint32_t>(registers[r]);
    for (int g = 0; g < 8; ++g) {
      const __m256 row = _mm256_loadu_ps(reinterpret_cast<const float*>(&d[g + r % 2 * 8][r / 2 * 8]));
      const __m128i rounded = _mm256_cvtps_ph(row, _MM_FROUND_TO_NEAREST_INT);
      const __m128i negative_zero = _mm_cmpeq_epi16(rounded, _mm_set1_epi16(INT16_MIN));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(words + 4 * g), _mm_andnot_si128(negative_zero, rounded));
    }
  }
}

void multiply(Warp& warp, const WarpProduct& product) {
  const WarpProductShape shape = WarpProductShape::of(*product.step);
  thread_local ColumnBlock a;
  read_a(warp, product, shape, &a);
  for (int first = 0; first < shape.n; first += kMatrixLanes) {
    const int columns = std::min(shape.n - first, kMatrixLanes);
    const RowBlock& b = prepared_b(warp.cta(), product, shape, first, columns);
    const Slot* registers = product.step->list + shape.d_registers(first);
    alignas(64) Rows d;
    if (product.accumulate) (shape.d_is_f16 ? load_half_d : load_d)(warp, registers, columns, d);
    const auto groups = static_cast<LaneGroups>((1 << groups_of_lanes(columns)) - 1);
    const MatrixArithmetic& arithmetic = matrix_arithmetic();
    (shape.d_is_f16 ? arithmetic.multiply_add_to_odd : arithmetic.multiply_add)(b, a, product.accumulate,
                                                                                groups, d);
    (shape.d_is_f16 ? store_half_d : store_d)(warp, registers, columns, d);
  }
}

// The shared memory that it reads.
void tell(Warp& warp, const WarpProduct& product, Observer& observer) {
  const WarpProductShape shape = WarpProductShape::of(*product.step);
  Footprint footprint;
  const auto add = [&](const OperandDescriptor& descriptor, bool mn_major, int extent) {
    const int lines = mn_major ? kMatrixDepth : extent, elements = mn_major ? extent : kMatrixDepth;
    footprint.add_operand(descriptor, mn_major, lines, elements / kChunkElements);
  };
  if (!shape.a_in_registers) {
    const int first = warp.index() % 4 * kRows;
    add(from_element(decode_warpgroup_descriptor(product.a), shape.a_mn_major, first), shape.a_mn_major,
        kRows);
  }
  add(decode_warpgroup_descriptor(product.b), shape.b_mn_major, shape.n);
  footprint.tell(observer, product.operation, &warp.cta(), Use::kRead);
}

}  // namespace

void perform(Warp& warp, const WarpProduct& product) {
  Observer* observer = warp.cta().observer();
  try {
    if (observer != nullptr) [[unlikely]]
      tell(warp, product, *observer);
    multiply(warp, product);
    if (observer != nullptr) [[unlikely]]
      observer->ended(product.operation);
  } catch (const Misuse& misuse) {
    warp.fault(*product.step, misuse.what());
  }
}

void complete_oldest_product(Warp& warp) {
  const WarpProduct product = warp.products.pending.front();
  warp.products.pending.pop_front();
  perform(warp, product);
}

void complete_product_groups(Warp& warp, std::uint32_t groups) {
  const std::deque<WarpProduct>& pending = warp.products.pending;
  while (!pending.empty() && pending.front().group < groups) complete_oldest_product(warp);
}

void check_touch(const Warp& warp, const Step& step) {
  const bool is_product =
      step.list_size != 0 && std::any_of(warp.products.pending.begin(), warp.products.pending.end(),
                                         [&](const WarpProduct& p) { return p.step->body == step.body; });
  const int own_d = is_product ? WarpProductShape::of(step).d_registers() : 0;
  for (const WarpProduct& product : warp.products.pending) {
    const WarpProductShape shape = WarpProductShape::of(*product.step);
    const int d_registers = shape.d_registers();
    for (int r = 0; r < d_registers + (shape.a_in_registers ? 4 : 0); ++r) {
      const Slot slot = product.step->list[r];
      const bool is_d = r < d_registers;
      bool touched = slot == step.d || (is_d && (slot == step.a || slot == step.b || slot == step.c));
      for (int i = 0; i < step.list_size; ++i) {
        if (step.list[i] != slot) continue;
        const bool own = i < own_d;  // D of a product that continues
        touched |= is_product ? own != is_d : is_d || step.writes_list;
      }
      if (!touched) continue;
      warp.fault(step, fmt::format("{} of the wgmma.mma_async at PTX line {} is {} before a wgmma.wait_group "
                                   "that covers it",
                                   is_d ? "the accumulator" : "A", product.step->line,
                                   is_d ? "used" : "overwritten"));
    }
  }
}

void WarpgroupOrder::issued(int warp, const WarpProduct& product) {
  const std::uint64_t place = count_[warp]++ - forgotten_;
  if (place == issued_.size()) {
    issued_.push_back(product);
    return;
  }
  const WarpProduct& other = issued_[place];
  if (other.step != product.step) {
    throw Misuse(
        fmt::format("another warp of the warpgroup has issued that at PTX line {} in its place; all four "
                    "must issue the same products",
                    other.step->line));
  }
  if (other.a != product.a || other.b != product.b || other.accumulate != product.accumulate) {
    throw Misuse(
        "another warp of the warpgroup has issued it with other descriptors or another scale-d; all "
        "four must agree");
  }
  if (*std::min_element(count_, count_ + 4) > forgotten_) {
    issued_.pop_front();
    ++forgotten_;
  }
}

}  // namespace flashback::emulator
