// The box of a tensor map between global and shared memory.
//
// In shared memory the box is dense, dimension 0 fastest; a swizzle exchanges 16-byte chunks by the absolute
// address: bits 4.. are XORed with bits 7.., one bit for 32 bytes, two for 64, three for 128. Chunks of 32
// bytes: bits 5 and 6 with bits 7 and 8.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/cluster.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/machine/units/transfer.h"

namespace flashback::emulator {
namespace {

constexpr std::uint32_t kChunk = 16;

// An address becomes address ^ (address >> 7 & mask) << shift.
struct Pattern {
  std::uint32_t mask, shift;
};

Pattern pattern_of(const TensorMap& map) {
  constexpr Pattern kPatterns[] = {{0, 4}, {1, 4}, {3, 4}, {7, 4}, {3, 5}};
  return kPatterns[static_cast<std::size_t>(map.swizzle)];
}

// The word of fp32 as a load through a map of tf32 leaves it: to nearest even tf32, which has 10 bits of
// fraction and fp32's exponents, and one NaN. Subnormal words are not flushed, whatever the type's name says.
std::uint32_t loaded(std::uint32_t word) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000, kNan = 0x7fffe000;
  if ((word & kMagnitude) > kInfinity) return kNan;
  constexpr std::uint32_t kDropped = 0x1fff;
  const std::uint32_t odd = word >> 13 & 1;
  return (word + (kDropped >> 1) + odd) & ~kDropped;
}

bool rounds(const TensorMap& map) {
  return map.type == MapType::kTf32 || map.type == MapType::kTf32Ftz;
}

// One row of the box (its extent along dimension 0): `inside` of its bytes, from `first` on, lie in the
// tensor.
struct Row {
  std::uint32_t shared;  // address of its start, before the swizzle
  Address global;        // of its byte `first`
  std::uint32_t bytes, first, inside;
};

class BoxCopy {
 public:
  // `rank`: of the CTA in whose shared memory the box lies.
  BoxCopy(Cta& cta, const Transfer& transfer, std::uint32_t rank)
      : cta_(cta), transfer_(transfer), pattern_(pattern_of(transfer.map)), rank_(rank) {}

  void copy_row(const Row& row) {
    if (row.inside != 0 && !cta_.global_holds(row.global, row.inside)) {
      throw Misuse(
          fmt::format("the tensor map reaches {} bytes at global address {:#x}; no allocation holds them",
                      row.inside, row.global),
          FaultKind::kIllegalAddress);
    }
    if (cta_.observer() != nullptr) [[unlikely]]
      note(row);
    switch (transfer_.kind) {
      case Transfer::Kind::kLoad:
        load(row);
        break;
      case Transfer::Kind::kStore:
        store(row);
        break;
      case Transfer::Kind::kReduce:
        reduce(row);
        break;
      case Transfer::Kind::kToPeer:  // plain bytes only
        break;
    }
  }

  // To be called after the last row, when somebody watches.
  void tell() {
    Observer& observer = *cta_.observer();
    const bool is_load = transfer_.kind == Transfer::Kind::kLoad;
    const Use global_use = is_load                                    ? Use::kRead
                           : transfer_.kind == Transfer::Kind::kStore ? Use::kWrite
                                                                      : Use::kReadWrite;
    shared_.tell(observer, transfer_.by.operation, &cta_.cluster().cta(rank_),
                 is_load ? Use::kWrite : Use::kRead);
    global_.tell(observer, transfer_.by.operation, nullptr, global_use);
  }

 private:
  // Chunks that are exchanged stay within 128 bytes of their row, or of rows beside it that are copied too.
  void note(const Row& row) {
    if (transfer_.kind == Transfer::Kind::kLoad || row.inside != 0)
      shared_.add(on_rank(row.shared, 0), row.bytes);
    global_.add(row.global, row.inside);
  }

  std::byte* chunk(std::uint32_t address) {
    return cta_.shared(address ^ (address >> 7 & pattern_.mask) << pattern_.shift);
  }

  void load(const Row& row) {
    if (row.inside != 0) cta_.settle_reductions(row.global, row.inside);
    const auto* from = reinterpret_cast<const std::byte*>(row.global) - row.first;
    for (std::uint32_t at = 0; at < row.bytes; at += kChunk) {
      std::byte* to = chunk(row.shared + at);
      if (at >= row.first && at + kChunk <= row.first + row.inside) {
        std::memcpy(to, from + at, kChunk);
      } else {
        std::memset(to, 0, kChunk);
        const std::uint32_t begin = std::max(at, row.first),
                            end = std::min(at + kChunk, row.first + row.inside);
        if (begin < end) std::memcpy(to + (begin - at), from + begin, end - begin);
      }
      if (rounds(transfer_.map)) round_chunk(to);
    }
  }

  static void round_chunk(std::byte* chunk) {
    std::uint32_t words[kChunk / 4];
    std::memcpy(words, chunk, kChunk);
    for (std::uint32_t& word : words) word = loaded(word);
    std::memcpy(chunk, words, kChunk);
  }

  void store(const Row& row) {
    if (row.inside != 0) cta_.settle_reductions(row.global, row.inside);
    auto* to = reinterpret_cast<std::byte*>(row.global) - row.first;
    for (std::uint32_t at = 0; at < row.bytes; at += kChunk) {
      const std::uint32_t begin = std::max(at, row.first),
                          end = std::min(at + kChunk, row.first + row.inside);
      if (begin < end) std::memcpy(to + begin, chunk(row.shared + at) + (begin - at), end - begin);
    }
  }

  void reduce(const Row& row) {
    float values[256];
    for (std::uint32_t at = 0; at < row.bytes; at += kChunk)
      std::memcpy(values + at / 4, chunk(row.shared + at), kChunk);
    if (row.inside != 0) cta_.reduce(row.global, {values + row.first / 4, row.inside / 4});
  }

  Cta& cta_;
  const Transfer& transfer_;
  const Pattern pattern_;
  const std::uint32_t rank_;
  Footprint shared_, global_;  // for the observer
};

}  // namespace

void check_box(const Transfer& transfer) {
  const TensorMap& map = transfer.map;
  if (map.magic != TensorMap::kMagic) throw Misuse("what it takes for a tensor map is none");
  if (transfer.kind == Transfer::Kind::kReduce && map.type != MapType::kF32) {
    throw Misuse("a reducing copy through a tensor map of other elements; fp32 is what this machine adds");
  }
  if (transfer.shared % 128 != 0) {
    throw Misuse(fmt::format("the shared address of the box is {:#x}, which is not a multiple of 128",
                             transfer.shared),
                 FaultKind::kMisalignedAddress);
  }
  const std::uint32_t row = std::uint32_t{map.box[0]} * map.element_bytes, width = swizzle_bytes(map.swizzle);
  if (width != 0 && row != width && map.box_bytes() != row) {
    throw Misuse(
        fmt::format("the rows of the box are {} bytes wide under a swizzle of {} bytes; an H200 takes "
                    "rows as wide as the swizzle and calls all else an illegal address",
                    row, width),
        FaultKind::kIllegalAddress);
  }
  if (const std::int64_t bytes = std::int64_t{transfer.coordinates[0]} * map.element_bytes; bytes % 16 != 0) {
    throw Misuse(fmt::format(
        "the box begins at element {} of a row, {} bytes from its start; an H200 takes multiples of "
        "16 bytes and calls all else an illegal instruction",
        transfer.coordinates[0], bytes));
  }
  for (int d = 0; d < map.rank && transfer.kind != Transfer::Kind::kLoad; ++d) {
    if (transfer.coordinates[d] < 0) {
      throw Misuse(fmt::format(
          "coordinate {} of the box is {}; only loads may begin below 0, stores and reductions are "
          "an illegal instruction on an H200",
          d, transfer.coordinates[d]));
    }
  }
}

void copy_box(Cta& cta, const Transfer& transfer, std::uint32_t shared) {
  const TensorMap& map = transfer.map;
  const std::int32_t* at = transfer.coordinates;
  BoxCopy copy(cta, transfer, rank_of(shared));

  // Along dimension 0: which elements of a box row lie in the tensor.
  const std::int64_t width = map.box[0];
  const std::int64_t begin = std::clamp<std::int64_t>(-std::int64_t{at[0]}, 0, width);
  const std::int64_t end =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(map.dims[0]) - at[0], begin, width);
  Row row;
  row.bytes = static_cast<std::uint32_t>(width) * map.element_bytes;
  row.first = static_cast<std::uint32_t>(begin) * map.element_bytes;
  row.shared = shared;
  const auto inside = static_cast<std::uint32_t>(end - begin) * map.element_bytes;

  std::uint32_t i[5] = {};
  while (true) {
    Address global = map.base + static_cast<std::uint64_t>((at[0] + begin) * map.element_bytes);
    bool in_tensor = true;
    for (int d = 1; d < map.rank; ++d) {
      const std::int64_t x = std::int64_t{at[d]} + i[d];
      in_tensor &= x >= 0 && x < static_cast<std::int64_t>(map.dims[d]);
      global += static_cast<std::uint64_t>(x) * map.strides[d - 1];
    }
    row.global = global;
    row.inside = in_tensor ? inside : 0;
    copy.copy_row(row);
    row.shared += row.bytes;
    int d = 1;
    while (d < map.rank && ++i[d] == map.box[d]) i[d++] = 0;
    if (d >= map.rank) break;
  }
  if (cta.observer() != nullptr) [[unlikely]]
    copy.tell();
}

}  // namespace flashback::emulator
