// wgmma.mma_async of many shapes against the step-by-step arithmetic, and when it takes effect.
#include "emulator/machine/units/warp_products.h"

#include <gtest/gtest.h>

#include <random>

#include "emulator/machine/fault.h"
#include "tests/emulator/machine/ptx_bench.h"
#include "tests/emulator/machine/units/matrix_reference.h"

namespace flashback::emulator::testing {
namespace {

TEST(WarpgroupDescriptor, HasTheFieldsOfSm90) {
  const OperandDescriptor d = decode_warpgroup_descriptor(0x4000004000010000 | 0x123);
  EXPECT_EQ(d.start, 0x1230u);
  EXPECT_EQ(d.leading_bytes, 16u);
  EXPECT_EQ(d.stride_bytes, 1024u);
  EXPECT_EQ(d.pattern_bytes, 128u);
  EXPECT_EQ(decode_warpgroup_descriptor(std::uint64_t{2} << 62).pattern_bytes, 64u);
  EXPECT_EQ(decode_warpgroup_descriptor(std::uint64_t{3} << 62).pattern_bytes, 32u);
  EXPECT_EQ(decode_warpgroup_descriptor(0).pattern_bytes, 16u);
}

TEST(WarpgroupDescriptor, RefusesWhatSm90DoesNotKnow) {
  for (const int bit : {14, 15, 30, 31, 46, 47, 48, 49, 50, 51, 52, 60, 61}) {
    EXPECT_THROW(decode_warpgroup_descriptor(std::uint64_t{1} << bit), Misuse) << bit;
  }
}

PtxBench bench_of(Completion completion) {
  MachineOptions options;
  options.arch = Arch::kSm90;
  options.threads = 1;
  options.schedule.completion = completion;
  return PtxBench(options);
}

std::string list(const std::string& prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i == 0 ? "" : ", ", prefix, i);
  return text + "}";
}

// ---- Arithmetic: D = A B + D, 64 x N x 16, operands without swizzle.

struct Form {
  int n;
  bool bf16, a_in_registers;
};
void PrintTo(const Form& form, std::ostream* out) {
  *out << "n" << form.n << (form.bf16 ? " bf16" : " f16") << (form.a_in_registers ? ", A in registers" : "");
}

struct Operands {
  std::vector<std::uint16_t> a, b;  // [row][16], [column][16]
  std::vector<std::uint32_t> d;     // [row][n]
};

Operands random_operands(const Form& form) {
  std::mt19937 random(static_cast<unsigned>(form.n));
  Operands x{std::vector<std::uint16_t>(64 * 16), std::vector<std::uint16_t>(form.n * 16),
             std::vector<std::uint32_t>(64 * form.n)};
  const int fraction_bits = form.bf16 ? 7 : 10, bias = form.bf16 ? 127 : 15;
  const auto half = [&] {  // from 2^-8 to 2^8, one in sixteen a zero
    const std::uint32_t r = random();
    const int exponent = bias - 8 + static_cast<int>(r >> 16) % 16;
    if (r % 16 == 0) return std::uint16_t{0};
    return static_cast<std::uint16_t>((r & 0x8000) | exponent << fraction_bits |
                                      (r & ((1 << fraction_bits) - 1)));
  };
  for (std::uint16_t& value : x.a) value = half();
  for (std::uint16_t& value : x.b) value = half();
  for (std::uint32_t& value : x.d) value = (random() & 0x807fffff) | (110 + random() % 30) << 23;
  return x;
}

// Of D: which element a thread has in a register.
int row_of(int thread, int r) {
  return thread / 32 * 16 + thread % 32 / 4 + r / 2 % 2 * 8;
}
int column_of(int thread, int r) {
  return r / 4 * 8 + thread % 4 * 2 + r % 2;
}

struct Buffers {
  Address a, b, d, a_fragments;
};

// Threads copy A and B into shared memory, rows of 16 bytes in core matrices of eight, and D into registers.
std::string program_of(const Form& form) {
  const std::string type = form.bf16 ? "bf16" : "f16";
  const int registers = form.n / 2;
  std::string body =
      ".reg .pred add, more;\n.reg .b32 t, i, at, w<4>, a<4>;\n.reg .b64 from, x, da, db;\n"
      "mov.u32 t, %tid.x;\nsetp.eq.u32 add, 0, 0;\n";
  body += fmt::format(".reg .f32 d<{}>;\n", registers);
  const auto copy = [&](int parameter, int rows,
                        int shared) {  // row i: chunks i / 8 * 256 + i % 8 * 16, + 128
    return fmt::format(
        "ld.param.u64 from, [p+{0}];\nmov.u32 i, t;\nCOPY{0}:\nsetp.lt.u32 more, i, {1};\n@!more bra "
        "DONE{0};\n"
        "mad.wide.u32 x, i, 32, from;\nshr.u32 at, i, 3;\nmul.lo.u32 at, at, 256;\nand.b32 w0, i, 7;\n"
        "mad.lo.u32 at, w0, 16, at;\nmov.u32 w0, dynamic;\nadd.u32 at, at, w0;\n"
        "ld.global.v4.b32 {{w0, w1, w2, w3}}, [x];\nst.shared.v4.b32 [at+{2}], {{w0, w1, w2, w3}};\n"
        "ld.global.v4.b32 {{w0, w1, w2, w3}}, [x+16];\nst.shared.v4.b32 [at+{3}], {{w0, w1, w2, w3}};\n"
        "add.u32 i, i, 128;\nbra COPY{0};\nDONE{0}:\n",
        parameter, rows, shared, shared + 128);
  };
  body += copy(0, 64, 0) + copy(8, form.n, 2048);
  body += "ld.param.u64 from, [p+16];\n";
  body += fmt::format("mad.wide.u32 x, t, {}, from;\n", 4 * registers);
  for (int r = 0; r < registers; ++r) body += fmt::format("ld.global.f32 d{}, [x+{}];\n", r, 4 * r);
  body += "ld.param.u64 from, [p+24];\nmad.wide.u32 from, t, 16, from;\n";
  body += "ld.global.v4.b32 {a0, a1, a2, a3}, [from];\n";
  body += "fence.proxy.async.shared::cta;\nbar.sync 0;\nmov.u32 at, dynamic;\nshr.u32 at, at, 4;\n";
  body += "cvt.u64.u32 da, at;\nor.b64 da, da, 0x1000080000;\nadd.u64 db, da, 128;\n";  // SBO 256, LBO 128
  body += fmt::format(
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {}, {}, db, add, "
      "1, 1, {};\n",
      form.n, type, type, list("d", registers), form.a_in_registers ? list("a", 4) : "da",
      form.a_in_registers ? "0" : "0, 0");
  body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (int r = 0; r < registers; ++r) body += fmt::format("st.global.f32 [x+{}], d{};\n", 4 * r, r);
  return module_of(sizeof(Buffers), body);
}

class WarpProductArithmetic : public ::testing::TestWithParam<Form> {};

TEST_P(WarpProductArithmetic, IsThatOfTheReference) {
  const Form form = GetParam();
  const Operands x = random_operands(form);
  const int registers = form.n / 2;
  std::vector<std::uint32_t> d(128 * registers), fragments(128 * 4);
  for (int t = 0; t < 128; ++t) {
    for (int r = 0; r < registers; ++r) d[t * registers + r] = x.d[row_of(t, r) * form.n + column_of(t, r)];
    for (int r = 0; r < 4; ++r) {
      const int row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8, k = t % 4 * 2 + r / 2 * 8;
      fragments[4 * t + r] = x.a[row * 16 + k] | std::uint32_t{x.a[row * 16 + k + 1]} << 16;
    }
  }
  const reference::HalfFormat format = form.bf16 ? reference::kBf16 : reference::kF16;
  for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
    PtxBench bench = bench_of(completion);
    const Buffers buffers = {bench.upload(x.a), bench.upload(x.b), bench.upload(d), bench.upload(fragments)};
    const Status status = bench.run(program_of(form), buffers, {128, 1, 1}, {1, 1, 1}, 16384);
    ASSERT_TRUE(status.ok()) << status.sentence();
    const auto got = bench.download<std::uint32_t>(buffers.d, d.size());
    for (int t = 0; t < 128; ++t) {
      for (int r = 0; r < registers; ++r) {
        const int row = row_of(t, r), column = column_of(t, r);
        const std::uint32_t expected = reference::fused_step(&x.a[row * 16], format, &x.b[column * 16],
                                                             format, x.d[row * form.n + column]);
        ASSERT_EQ(got[t * registers + r], expected) << "row " << row << ", column " << column;
      }
    }
  }
}

std::vector<Form> forms() {
  std::vector<Form> all;
  for (int n = 8; n <= 256; n += 8) all.push_back({n, n % 16 == 0, n % 24 == 0});
  for (const bool bf16 : {false, true}) {
    for (const bool a_in_registers : {false, true}) all.push_back({64, bf16, a_in_registers});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Forms, WarpProductArithmetic, ::testing::ValuesIn(forms()));

// ---- Time: a product of ones, 16 in every element, and what the program does before it waits.

Status run_early(Completion completion, const std::string& before_wait, std::vector<float>* d,
                 const std::string& after_wait = "") {
  PtxBench bench = bench_of(completion);
  *d = std::vector<float>(128);
  const Address to = bench.upload(*d);
  const std::string body =
      ".reg .pred no;\n.reg .b32 t, at, a<4>, one;\n.reg .f32 d<4>, x;\n.reg .b64 b, to;\nmov.u32 t, "
      "%tid.x;\n"
      "mov.b32 one, 0x3f803f80;\nmov.b32 a0, one;\nmov.b32 a1, one;\nmov.b32 a2, one;\nmov.b32 a3, one;\n"
      "shl.b32 at, t, 4;\nmov.u32 a0, dynamic;\nadd.u32 at, at, a0;\nmov.b32 a0, one;\n"
      "st.shared.v4.b32 [at], {one, one, one, one};\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "mov.u32 at, dynamic;\nshr.u32 at, at, 4;\ncvt.u64.u32 b, at;\nor.b64 b, b, 0x1000080000;\n"
      "setp.ne.u32 no, 0, 0;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {d0, d1, d2, d3}, {a0, a1, a2, a3}, b, no, 1, 1, "
      "0;\n"
      "wgmma.commit_group.sync.aligned;\n" +
      before_wait + "wgmma.wait_group.sync.aligned 0;\n" + after_wait +
      "ld.param.u64 to, [p];\nmad.wide.u32 to, t, 4, to;\nst.global.f32 [to], d0;\n";
  const Status status = bench.run(module_of(8, body), to, {128, 1, 1}, {1, 1, 1}, 4096);
  *d = bench.download<float>(to, 128);
  return status;
}

// All warps have issued it, then B becomes zeros.
constexpr const char* kOverwriteB =
    "bar.sync 0;\nmov.u32 at, dynamic;\nshl.b32 t, t, 4;\nadd.u32 at, at, t;\nshr.u32 t, t, 4;\nmov.b32 one, "
    "0;\n"
    "st.shared.v4.b32 [at], {one, one, one, one};\nbar.sync 0;\n";

TEST(WarpProductTime, EagerAtTheIssueAndLazyAtTheWait) {
  std::vector<float> d;
  ASSERT_TRUE(run_early(Completion::kEager, kOverwriteB, &d).ok());
  EXPECT_EQ(d, std::vector<float>(128, 16.0f));
  ASSERT_TRUE(run_early(Completion::kLazy, kOverwriteB, &d).ok());
  EXPECT_EQ(d, std::vector<float>(128, 0.0f));
}

TEST(WarpProductTime, RegistersAreThePropertyOfTheProductUntilTheWait) {
  std::vector<float> d;
  Status status = run_early(Completion::kLazy, "add.f32 x, d3, d3;\n", &d);
  EXPECT_NE(status.sentence().find("the accumulator of the wgmma.mma_async at PTX line"), std::string::npos)
      << status.sentence();
  EXPECT_NE(status.sentence().find("is used before a wgmma.wait_group"), std::string::npos)
      << status.sentence();
  status = run_early(Completion::kLazy, "mov.f32 d1, 0f00000000;\n", &d);
  EXPECT_NE(status.sentence().find("the accumulator"), std::string::npos) << status.sentence();
  status = run_early(Completion::kLazy, "mov.b32 a2, 0;\n", &d);
  EXPECT_NE(status.sentence().find("A of the wgmma.mma_async"), std::string::npos) << status.sentence();
  EXPECT_NE(status.sentence().find("is overwritten before"), std::string::npos) << status.sentence();
  EXPECT_TRUE(run_early(Completion::kLazy, "mov.b32 one, a2;\n", &d).ok());  // a value that nobody changes
  EXPECT_EQ(d, std::vector<float>(128, 16.0f));
}

TEST(WarpProductTime, RegistersAreFreeAfterTheWait) {
  std::vector<float> d;
  const Status status = run_early(Completion::kLazy, "", &d, "mov.b32 a2, 0;\nadd.f32 d0, d0, d0;\n");
  ASSERT_TRUE(status.ok()) << status.sentence();
  EXPECT_EQ(d, std::vector<float>(128, 32.0f));
}

// A register that nobody reads any more is still the product's: its place must not go to another one.
TEST(WarpProductTime, DeadOperandsKeepTheirPlaces) {
  std::string others = ".reg .b32 y<64>;\n";
  for (int i = 0; i < 64; ++i) others += fmt::format("add.u32 y{}, t, {};\n", i, i);
  std::string sum = "mov.u32 one, 0;\n";
  for (int i = 0; i < 64; ++i) sum += fmt::format("add.u32 one, one, y{};\n", i);
  sum += "cvt.rn.f32.u32 x, one;\nadd.f32 d0, d0, x;\n";
  for (const Completion completion : {Completion::kLazy, Completion::kRandom}) {
    std::vector<float> d;
    ASSERT_TRUE(run_early(completion, others, &d, sum).ok());
    for (int t = 0; t < 128; ++t) EXPECT_EQ(d[t], 16.0f + 64.0f * t + 2016.0f) << t;
  }
}

}  // namespace
}  // namespace flashback::emulator::testing
