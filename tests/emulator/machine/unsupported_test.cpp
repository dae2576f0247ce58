// What the machine does not have ends the launch before it begins, with a sentence that names it and its
// line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

struct Instruction {
  const char *name, *text;
};

class Unsupported : public ::testing::TestWithParam<Instruction> {};

TEST_P(Unsupported, IsNamedWithItsLine) {
  const std::string instruction = GetParam().text;
  const std::string ptx = module_of(8, R"(
.reg .b64 %out, %map, %d;
.reg .b32 %m, %r<4>, %a<4>, %f<4>;
.reg .b16 %h;
.reg .pred %p;
ld.param.u64 %out, [p];
mov.u32 %m, dynamic;
st.global.b32 [%out], 7;
)" + instruction + "\n");
  PtxBench bench;
  const Address out = bench.upload(std::vector<std::uint32_t>(1));
  const Status status = bench.run(ptx, out, {32, 1, 1}, {1, 1, 1}, 1024);
  const std::string opcode = instruction.substr(0, instruction.find(' '));
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.sentence();
  EXPECT_NE(status.sentence().find('`' + opcode), std::string::npos) << status.sentence();
  const auto before = static_cast<std::size_t>(ptx.find(instruction));
  const auto line = 1 + std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(before), '\n');
  EXPECT_NE(status.sentence().find(fmt::format("line {}", line)), std::string::npos) << status.sentence();
  EXPECT_EQ(bench.download<std::uint32_t>(out, 1)[0], 0u) << "the launch has begun";
}

constexpr Instruction kInstructions[] = {
    {"TensorMemoryCopy", "tcgen05.cp.cta_group::1.128x256b [%r0], %d;"},
    {"TensorMemoryShift", "tcgen05.shift.cta_group::1.down [%r0];"},
    {"EightBitProducts", "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r0], %d, %d, %r1, %p;"},
    {"BlockScaledProducts",
     "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r0], %d, %d, %r1, [%r2], [%r3], %p;"},
    {"SparseProducts", "tcgen05.mma.sp.cta_group::1.kind::f16 [%r0], %d, %d, [%r2], %r1, %p;"},
    {"WeightStationaryProducts", "tcgen05.mma.ws.cta_group::1.kind::f16 [%r0], %d, %d, %r1, %p;"},
    {"WarpProducts",
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a0, %a1}, {%r0}, {%f0, %f1, "
     "%f2, %f3};"},
    {"MultimemLoad", "multimem.ld_reduce.global.add.u32 %r0, [%out];"},
    {"MultimemStore", "multimem.st.global.u32 [%out], %r0;"},
    {"MultimemReduction", "multimem.red.global.add.u32 [%out], %r0;"},
    {"BulkMinimum", "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.u32 [%out], [%m], 16;"},
    {"BulkHalfSum", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%out], [%m], 16;"},
    {"ImageToColumn",
     "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%m], [%map, {%r0, "
     "%r1, %r2}], [%m], {%h};"},
    {"MapReplacement", "tensormap.replace.tile.global_address.global.b1024.b64 [%out], %d;"},
    {"Texture", "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d, {%r0}];"},
    {"VideoDifference", "vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;"},
    {"IndirectBranch", "brx.idx %r0, TARGETS;"},
};

INSTANTIATE_TEST_SUITE_P(All, Unsupported, ::testing::ValuesIn(kInstructions),
                         [](const auto& info) { return std::string(info.param.name); });

// Directives that would change what a launch is.
TEST(UnsupportedDirective, BlocksThatAreClusters) {
  PtxBench bench;
  const Status status = bench.run(module_of(8, "", ".reqntid 32 .reqnctapercluster 2 .blocksareclusters"),
                                  Address{0}, {32, 1, 1}, {2, 1, 1});
  EXPECT_NE(status.sentence().find("`.blocksareclusters`"), std::string::npos) << status.sentence();
}

}  // namespace
}  // namespace flashback::emulator::testing
