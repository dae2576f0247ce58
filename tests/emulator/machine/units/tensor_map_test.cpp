// The rules of tensor maps, which are the driver's.
#include "emulator/machine/units/tensor_map.h"

#include <gtest/gtest.h>

#include <functional>

namespace flashback::emulator {
namespace {

TensorMapRequest good() {
  TensorMapRequest request;
  request.base = 0x10000;
  request.type = ElementType::kBf16;
  request.swizzle = Swizzle::k128;
  request.rank = 3;
  request.dims[0] = 64;
  request.dims[1] = 1000;
  request.dims[2] = 7;
  request.strides[0] = 128;
  request.strides[1] = 128000;
  request.box[0] = 64;
  request.box[1] = 128;
  request.box[2] = 1;
  return request;
}

struct Rule {
  const char* name;
  std::function<void(TensorMapRequest&)> break_it;
  const char* sentence;
};

class TensorMapRules : public ::testing::TestWithParam<Rule> {};

TEST_P(TensorMapRules, IsRefusedWithASentence) {
  TensorMap map;
  TensorMapRequest request = good();
  ASSERT_TRUE(encode_tensor_map(request, &map).ok());
  GetParam().break_it(request);
  const Status status = encode_tensor_map(request, &map);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.sentence().find(GetParam().sentence), std::string::npos) << status.sentence();
}

INSTANTIATE_TEST_SUITE_P(
    All, TensorMapRules,
    ::testing::Values(
        Rule{"Rank", [](TensorMapRequest& r) { r.rank = 6; }, "rank 6; 1 to 5"},
        Rule{"RankZero", [](TensorMapRequest& r) { r.rank = 0; }, "rank 0"},
        Rule{"Base", [](TensorMapRequest& r) { r.base += 8; }, "multiple of 16"},
        Rule{"Dimension", [](TensorMapRequest& r) { r.dims[1] = 0; }, "dimension 1 of the tensor is 0"},
        Rule{"Box", [](TensorMapRequest& r) { r.box[1] = 257; }, "extent 1 of the box is 257; 1 to 256"},
        Rule{"BoxZero", [](TensorMapRequest& r) { r.box[2] = 0; }, "extent 2 of the box is 0"},
        Rule{"Stride", [](TensorMapRequest& r) { r.strides[0] = 136; }, "stride of dimension 1 is 136"},
        Rule{"StrideTooLarge", [](TensorMapRequest& r) { r.strides[1] = std::uint64_t{1} << 40; },
             "below 2^40"},
        Rule{"BoxWiderThanSwizzle", [](TensorMapRequest& r) { r.swizzle = Swizzle::k64; },
             "may be 64 at most"},
        Rule{"BoxOfOddBytes", [](TensorMapRequest& r) { r.box[0] = 4; }, "multiple of 16"}),
    [](const auto& info) { return info.param.name; });

TEST(TensorMap, MustBeAligned) {
  alignas(64) std::byte bytes[256];
  EXPECT_TRUE(encode_tensor_map(good(), bytes + 64).ok());
  EXPECT_NE(encode_tensor_map(good(), bytes + 32).sentence().find("multiple of 64"), std::string::npos);
}

}  // namespace
}  // namespace flashback::emulator
