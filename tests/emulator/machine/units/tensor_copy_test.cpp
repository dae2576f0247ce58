// Boxes of tensor maps, loaded, stored and added, against the definition element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "emulator/machine/units/tensor_map.h"
#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

struct Parameters {
  TensorMap map;
  Address data;  // the box, dense and without swizzle as it lies in shared memory
  Address unused;
  std::int32_t at[5];
};

std::string coordinates(int rank) {
  std::string list;
  for (int d = 0; d < rank; ++d) list += fmt::format("{}%c{}", d == 0 ? "" : ", ", d);
  return list;
}

// Loads the box to shared memory and copies its `bytes` to `data`; thread 0 works, the rest watch.
std::string loading(int rank, std::uint32_t bytes) {
  return module_of(sizeof(Parameters), fmt::format(R"(
.reg .b32 %s, %m, %c<6>, %i, %v;
.reg .b64 %map, %data, %at;
.reg .pred %done, %more, %other;
mov.u32 %i, %tid.x;
setp.ne.u32 %other, %i, 0;
@%other exit;
mov.b64 %map, p;
cvta.param.u64 %map, %map;
ld.param.u64 %data, [p+128];
ld.param.v4.b32 {{%c0, %c1, %c2, %c3}}, [p+144];
ld.param.b32 %c4, [p+160];
mov.u32 %m, dynamic;
add.u32 %s, %m, 1024;
mbarrier.init.shared::cta.b64 [%m], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], {1};
cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [%map, {{{2}}}], [%m];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %done, [%m], 0;
@!%done bra WAIT;
mov.u32 %i, 0;
COPY:
add.u32 %v, %s, %i;
ld.shared.b32 %v, [%v];
cvt.u64.u32 %at, %i;
add.s64 %at, %at, %data;
st.global.b32 [%at], %v;
add.u32 %i, %i, 4;
setp.lt.u32 %more, %i, {1};
@%more bra COPY;
)",
                                                   rank, bytes, coordinates(rank)));
}

// Copies `data` to shared memory and sends it to the tensor.
std::string storing(int rank, std::uint32_t bytes, const char* operation) {
  return module_of(sizeof(Parameters),
                   fmt::format(R"(
.reg .b32 %s, %c<6>, %i, %v, %w;
.reg .b64 %map, %data, %at;
.reg .pred %more, %other;
mov.u32 %i, %tid.x;
setp.ne.u32 %other, %i, 0;
@%other exit;
mov.b64 %map, p;
cvta.param.u64 %map, %map;
ld.param.u64 %data, [p+128];
ld.param.v4.b32 {{%c0, %c1, %c2, %c3}}, [p+144];
ld.param.b32 %c4, [p+160];
mov.u32 %s, dynamic;
mov.u32 %i, 0;
COPY:
cvt.u64.u32 %at, %i;
add.s64 %at, %at, %data;
ld.global.b32 %v, [%at];
add.u32 %w, %s, %i;
st.shared.b32 [%w], %v;
add.u32 %i, %i, 4;
setp.lt.u32 %more, %i, {1};
@%more bra COPY;
fence.proxy.async.shared::cta;
{3}.bulk_group [%map, {{{2}}}], [%s];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
)",
                               rank, bytes, coordinates(rank), fmt::format(fmt::runtime(operation), rank)));
}

struct Box {
  const char* name;
  MapType type;
  MapSwizzle swizzle;
  int rank;
  std::uint64_t dims[5];
  std::uint32_t box[5];
  std::int32_t at[5];
};

class Boxes : public ::testing::TestWithParam<std::tuple<Box, Completion>> {
 protected:
  Boxes() : box_(std::get<0>(GetParam())), bench_(options()) {
    element_ = box_.type == MapType::kU8    ? 1
               : box_.type == MapType::kF32 ? 4
               : box_.type == MapType::kF64 ? 8
                                            : 2;
    request_.type = box_.type;
    request_.swizzle = box_.swizzle;
    request_.rank = box_.rank;
    std::uint64_t stride = element_;
    bytes_ = element_;
    for (int d = 0; d < box_.rank; ++d) {
      request_.dims[d] = box_.dims[d];
      request_.box[d] = box_.box[d];
      stride = (stride * box_.dims[d] + 15) / 16 * 16;  // padded: strides are multiples of 16
      if (d < 4) request_.strides[d] = stride;
      bytes_ *= box_.box[d];
    }
    tensor_bytes_ = stride;
    // The shared-memory image of the box starts 1 KiB aligned, so addresses swizzle like offsets.
    mask_ = box_.swizzle == MapSwizzle::kNone  ? 0
            : box_.swizzle == MapSwizzle::k32  ? 1
            : box_.swizzle == MapSwizzle::k128 ? 7
                                               : 3;
    shift_ = box_.swizzle == MapSwizzle::k128Atom32 ? 5 : 4;
  }
  static MachineOptions options() {
    MachineOptions options;
    options.schedule.completion = std::get<1>(GetParam());
    return options;
  }

  bool below_zero() const {
    return std::any_of(box_.at, box_.at + box_.rank, [](std::int32_t x) { return x < 0; });
  }

  Parameters parameters(Address tensor, Address data) {
    Parameters p{};
    request_.base = tensor;
    EXPECT_TRUE(encode_tensor_map(request_, &p.map).ok());
    p.data = data;
    std::copy_n(box_.at, 5, p.at);
    return p;
  }

  // Calls f(offset in shared memory, offset in the tensor or -1) for each element of the box.
  template <class F>
  void each_element(F&& f) const {
    std::uint32_t i[5] = {}, linear = 0;
    for (bool more = true; more; ++linear) {
      std::int64_t offset = 0;
      for (int d = 0; d < box_.rank; ++d) {
        const std::int64_t x = std::int64_t{box_.at[d]} + i[d];
        const bool inside = x >= 0 && x < static_cast<std::int64_t>(box_.dims[d]);
        if (!inside) offset = -1;
        if (offset >= 0) offset += x * static_cast<std::int64_t>(d == 0 ? element_ : request_.strides[d - 1]);
      }
      std::uint32_t shared = linear * element_;
      shared ^= (shared >> 7 & mask_) << shift_;
      f(shared, offset);
      int d = 0;
      while (d < box_.rank && ++i[d] == box_.box[d]) i[d++] = 0;
      more = d < box_.rank;
    }
  }

  Box box_;
  PtxBench bench_;
  TiledTensor request_;
  std::uint32_t element_, bytes_, mask_, shift_;
  std::uint64_t tensor_bytes_;
};

TEST_P(Boxes, LoadFillsWhatIsOutsideWithZeros) {
  std::vector<std::byte> tensor(tensor_bytes_);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::byte>(1 + i * 7 % 251);
  std::vector<std::byte> expected(bytes_);
  each_element([&](std::uint32_t shared, std::int64_t offset) {
    if (offset >= 0) std::memcpy(&expected[shared], &tensor[static_cast<std::size_t>(offset)], element_);
  });
  const Address data = bench_.upload(std::vector<std::byte>(bytes_));
  const Parameters p = parameters(bench_.upload(tensor), data);
  const Status status = bench_.run(loading(box_.rank, bytes_), p, {32, 1, 1}, {1, 1, 1}, 1024 + bytes_);
  ASSERT_TRUE(status.ok()) << status.sentence();
  EXPECT_EQ(bench_.download<std::byte>(data, bytes_), expected);
}

TEST_P(Boxes, StoreLeavesWhatIsOutsideAlone) {
  std::vector<std::byte> data(bytes_), expected(tensor_bytes_, std::byte{0xee});
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(1 + i * 5 % 241);
  each_element([&](std::uint32_t shared, std::int64_t offset) {
    if (offset >= 0) std::memcpy(&expected[static_cast<std::size_t>(offset)], &data[shared], element_);
  });
  const Address tensor = bench_.upload(std::vector<std::byte>(tensor_bytes_, std::byte{0xee}));
  const Parameters p = parameters(tensor, bench_.upload(data));
  const Status status =
      bench_.run(storing(box_.rank, bytes_, "cp.async.bulk.tensor.{}d.global.shared::cta.tile"), p,
                 {32, 1, 1}, {1, 1, 1}, bytes_);
  if (below_zero()) {
    EXPECT_NE(status.sentence().find("only loads may begin below 0"), std::string::npos) << status.sentence();
    return;
  }
  ASSERT_TRUE(status.ok()) << status.sentence();
  EXPECT_EQ(bench_.download<std::byte>(tensor, tensor_bytes_), expected);
}

TEST_P(Boxes, ReductionAddsFloats) {
  std::vector<float> data(bytes_ / 4), expected(tensor_bytes_ / 4, 1000);
  std::iota(data.begin(), data.end(), 1.0f);
  if (box_.type == MapType::kF32) {
    each_element([&](std::uint32_t shared, std::int64_t offset) {
      if (offset >= 0) expected[static_cast<std::size_t>(offset) / 4] += data[shared / 4];
    });
  }
  const Address tensor = bench_.upload(std::vector<float>(tensor_bytes_ / 4, 1000));
  const Parameters p = parameters(tensor, bench_.upload(data));
  const Status status =
      bench_.run(storing(box_.rank, bytes_, "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.add.tile"), p,
                 {32, 1, 1}, {1, 1, 1}, bytes_);
  if (below_zero()) {
    EXPECT_FALSE(status.ok());
  } else if (box_.type == MapType::kF32) {
    ASSERT_TRUE(status.ok()) << status.sentence();
    EXPECT_EQ(bench_.download<float>(tensor, tensor_bytes_ / 4), expected);
  } else {
    EXPECT_NE(status.sentence().find("fp32 is what this machine adds"), std::string::npos)
        << status.sentence();
  }
}

const Box kBoxes[] = {
    {"Line", MapType::kF32, MapSwizzle::kNone, 1, {100}, {32}, {80}},
    {"LineBefore", MapType::kBf16, MapSwizzle::kNone, 1, {100}, {32}, {-8}},
    {"Tile128", MapType::kBf16, MapSwizzle::k128, 2, {64, 40}, {64, 16}, {0, 8}},
    {"Tile128Edge", MapType::kBf16, MapSwizzle::k128, 2, {64, 40}, {64, 16}, {0, 33}},
    {"Tile64", MapType::kBf16, MapSwizzle::k64, 2, {64, 40}, {32, 16}, {32, 8}},
    {"Tile32", MapType::kF16, MapSwizzle::k32, 2, {48, 40}, {16, 24}, {40, -3}},
    {"Bytes128", MapType::kU8, MapSwizzle::k128, 2, {200, 12}, {128, 8}, {80, 6}},
    {"Doubles64", MapType::kF64, MapSwizzle::k64, 2, {21, 12}, {8, 8}, {-2, -2}},
    {"Float128Chunks32", MapType::kF32, MapSwizzle::k128Atom32, 2, {72, 20}, {32, 8}, {64, 15}},
    {"Float128", MapType::kF32, MapSwizzle::k128, 2, {72, 20}, {32, 8}, {64, 15}},
    {"Float64", MapType::kF32, MapSwizzle::k64, 3, {20, 9, 4}, {16, 4, 2}, {8, 7, 3}},
    {"Heads", MapType::kBf16, MapSwizzle::k128, 4, {64, 21, 3, 2}, {64, 16, 1, 1}, {0, 16, 2, 1}},
    {"FiveDimensions",
     MapType::kF32,
     MapSwizzle::kNone,
     5,
     {8, 3, 4, 3, 2},
     {4, 2, 3, 2, 2},
     {4, 1, 2, -1, 1}},
    {"Elsewhere", MapType::kF32, MapSwizzle::k32, 2, {16, 16}, {8, 4}, {16, 99}},
};

INSTANTIATE_TEST_SUITE_P(All, Boxes,
                         ::testing::Combine(::testing::ValuesIn(kBoxes),
                                            ::testing::Values(Completion::kEager, Completion::kLazy)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == Completion::kEager ? "Eager" : "Lazy");
                         });

class BoxFaults : public ::testing::Test {
 protected:
  BoxFaults() : tensor_(bench_.upload(std::vector<float>(64))), data_(bench_.upload(std::vector<float>(64))) {
    TensorMapRequest request;
    request.base = tensor_;
    request.type = ElementType::kF32;
    request.swizzle = Swizzle::kNone;
    request.rank = 1;
    request.dims[0] = 64;
    request.box[0] = 32;
    EXPECT_TRUE(bench_.workbench().encode(request, &parameters_.map).ok());
    parameters_.data = data_;
  }
  std::string sentence(int rank, std::uint32_t shared_bytes = 4096) {
    return bench_.run(loading(rank, 128), parameters_, {32, 1, 1}, {1, 1, 1}, shared_bytes).sentence();
  }
  PtxBench bench_;
  Address tensor_, data_;
  Parameters parameters_{};
};

// An H200 ends such launches with an illegal address; a box of a single row it takes.
TEST_F(BoxFaults, RowsNarrowerThanTheSwizzle) {
  TensorMapRequest request;
  request.base = tensor_;
  request.type = ElementType::kF32;
  request.swizzle = Swizzle::k64;
  request.rank = 2;
  request.dims[0] = 16;
  request.dims[1] = 4;
  request.strides[0] = 64;
  request.box[0] = 8;
  request.box[1] = 4;
  ASSERT_TRUE(bench_.workbench().encode(request, &parameters_.map).ok());
  EXPECT_NE(sentence(2).find("rows as wide as the swizzle"), std::string::npos) << sentence(2);
  request.box[0] = 16;
  request.box[1] = 2;
  ASSERT_TRUE(bench_.workbench().encode(request, &parameters_.map).ok());
  EXPECT_EQ(sentence(2), "");
  request.box[0] = 8;
  request.box[1] = 1;
  ASSERT_TRUE(bench_.workbench().encode(request, &parameters_.map).ok());
  EXPECT_EQ(sentence(2).find("rows as wide as the swizzle"), std::string::npos) << sentence(2);
}

TEST_F(BoxFaults, RightOneRuns) {
  EXPECT_EQ(sentence(1), "");
}

// A known defect of old drivers is mended by programs that clear this bit after encoding.
TEST_F(BoxFaults, Bit21OfTheSecondWordIsFree) {
  std::uint64_t words[16];
  std::memcpy(words, &parameters_.map, sizeof words);
  words[1] ^= std::uint64_t{1} << 21;
  std::memcpy(&parameters_.map, words, sizeof words);
  EXPECT_EQ(sentence(1), "");
}

TEST_F(BoxFaults, NoMap) {
  parameters_.map.magic = 0;
  EXPECT_NE(sentence(1).find("what it takes for a tensor map is none"), std::string::npos);
}

TEST_F(BoxFaults, RankDiffers) {
  EXPECT_NE(sentence(2).find("2 coordinates for a tensor map of rank 1"), std::string::npos);
}

TEST_F(BoxFaults, SharedMemoryTooSmall) {
  EXPECT_NE(sentence(1, 1100).find("a box of 128 bytes at shared address 0x800"), std::string::npos);
}

TEST_F(BoxFaults, FirstCoordinateIsNoMultipleOf16Bytes) {
  parameters_.at[0] = 5;
  EXPECT_NE(sentence(1).find("begins at element 5 of a row, 20 bytes from its start"), std::string::npos);
}

TEST_F(BoxFaults, MemoryWasReleased) {
  bench_.workbench().release(tensor_);
  EXPECT_NE(sentence(1).find("no allocation holds them"), std::string::npos);
}

}  // namespace
}  // namespace flashback::emulator::testing
