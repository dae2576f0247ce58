// ldmatrix and stmatrix: matrices of 8 x 8 16-bit elements between shared memory and the registers of a warp.
// Lane 8 i + r has the address of row r of matrix i. Register i of lane l is elements 2 (l % 4) and the next
// of row l / 4 of matrix i; with .trans, of column l / 4.
#include <cstring>

#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/execute/whole_warp.h"
#include "emulator/machine/observer.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

constexpr int kSize = 8, kRowBytes = 16;  // of a matrix

using Matrix = std::uint16_t[kSize][kSize];

struct Place {  // of the lane's pair of elements
  int row, column;
};
template <bool transposed>
Place first_of(int lane) {
  return transposed ? Place{lane % 4 * 2, lane / 4} : Place{lane / 4, lane % 4 * 2};
}
template <bool transposed>
Place second_of(int lane) {
  const Place first = first_of<transposed>(lane);
  return transposed ? Place{first.row + 1, first.column} : Place{first.row, first.column + 1};
}

template <class Width>
std::byte* row_of(Warp& warp, const Step& step, int matrix, int row) {
  return shared_object<Width>(warp, step, step.a, step.immediate, kSize * matrix + row, kRowBytes,
                              "a row of a matrix");
}

// Tells the observer that each lane's row of 16 bytes is accessed.
template <class Width>
void tell_rows(Warp& warp, const Step& step, Use use) {
  if (warp.cta().observer() == nullptr) [[likely]]
    return;
  std::uint64_t addresses[32];
  LaneAccess access;
  access.owner = &warp.cta();
  access.use = use;
  access.bytes = kRowBytes;
  access.addresses = addresses;
  for (int l = 0; l < kSize * step.list_size; ++l) {
    access.lanes |= LaneMask{1} << l;
    addresses[l] = on_rank(shared_address<Width>(warp, step, step.a, step.immediate, l), 0);
  }
  warp.cta().observer()->accessed(warp, step, access);
}

template <class Width, bool transposed>
void load(Warp& warp, const Step& step, LaneMask) {
  if (!whole_warp(warp, step)) return;
  tell_rows<Width>(warp, step, Use::kRead);
  std::uint32_t words[4][32];  // the address register may be among the destinations
  for (int i = 0; i < step.list_size; ++i) {
    Matrix matrix;
    for (int r = 0; r < kSize; ++r) std::memcpy(matrix[r], row_of<Width>(warp, step, i, r), kRowBytes);
    for (int l = 0; l < 32; ++l) {
      const Place first = first_of<transposed>(l), second = second_of<transposed>(l);
      words[i][l] = matrix[first.row][first.column] |
                    static_cast<std::uint32_t>(matrix[second.row][second.column]) << 16;
    }
  }
  for (int i = 0; i < step.list_size; ++i) {
    if (step.list[i] != kNone)
      std::memcpy(warp.lanes<std::uint32_t>(step.list[i]), words[i], sizeof words[i]);
  }
}

template <class Width, bool transposed>
void store(Warp& warp, const Step& step, LaneMask) {
  if (!whole_warp(warp, step)) return;
  tell_rows<Width>(warp, step, Use::kWrite);
  for (int i = 0; i < step.list_size; ++i) {
    const std::uint32_t* words = warp.lanes<std::uint32_t>(step.list[i]);
    Matrix matrix;
    for (int l = 0; l < 32; ++l) {
      const Place first = first_of<transposed>(l), second = second_of<transposed>(l);
      matrix[first.row][first.column] = static_cast<std::uint16_t>(words[l]);
      matrix[second.row][second.column] = static_cast<std::uint16_t>(words[l] >> 16);
    }
    for (int r = 0; r < kSize; ++r) std::memcpy(row_of<Width>(warp, step, i, r), matrix[r], kRowBytes);
  }
}

template <bool is_load, class Width>
Body of_order(Match& match) {
  if (is_load) return match.has(".trans") ? load<Width, true> : load<Width, false>;
  return match.has(".trans") ? store<Width, true> : store<Width, false>;
}

// Choices: count, space.
template <bool is_load>
Body select(Match& match) {
  if (match.choice(0) != fmt::format("x{}", match.list_size())) return nullptr;
  return match.bytes('a') == 8 ? of_order<is_load, std::uint64_t>(match)
                               : of_order<is_load, std::uint32_t>(match);
}

#define MATRICES ".sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16"

constexpr Row kRows[] = {
    {"ldmatrix" MATRICES, "list:{r32}, [a]", select<true>},
    {"stmatrix" MATRICES, "[a], list:{r32}", select<false>},
};

}  // namespace

std::span<const Row> matrix_transfer_rows() {
  return kRows;
}

}  // namespace flashback::emulator
