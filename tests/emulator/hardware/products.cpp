// wgmma on operands of every kind: steps of m64n8k16 (tf32: k8) with A and the accumulator in registers and B
// in shared memory without swizzle. The layouts have texts of their own.
#include "tests/emulator/hardware/products.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <memory>

#include "tests/emulator/hardware/experiment.h"
#include "tests/emulator/machine/units/matrix_operand_kinds.h"

namespace flashback::emulator::testing {
namespace {

// A form of n = 8 whose rows of A and columns of B have 32 bytes; what lies where is the same for all.
struct Form {
  const char *name, *shape_and_types;
  Half type;
  bool d_is_f16 = false;
};
constexpr Form kForms[] = {{"product_bf16", "m64n8k16.f32.bf16.bf16", Half::kBf16},
                           {"product_f16", "m64n8k16.f32.f16.f16", Half::kF16},
                           {"product_f16_d", "m64n8k16.f16.f16.f16", Half::kF16, true},
                           {"product_tf32", "m64n8k8.f32.tf32.tf32", Half::kTf32}};

std::size_t d_bytes(const Form& form) {
  return form.d_is_f16 ? 2 : 4;
}

// One CTA a step: its words of `steps` to registers and shared memory, and d back.
std::string module_for(const Form& form) {
  constexpr std::size_t kA = offsetof(ProductStep, a), kB = offsetof(ProductStep, b),
                        kC = offsetof(ProductStep, c);
  static_assert(kProductColumns == 8 && kMatrixDepth == 16);
  // The thread's words of C and D: two columns of two rows, in fp16 a word for both columns.
  std::string load_c, store_d, registers;
  for (int i = 0; i < (form.d_is_f16 ? 2 : 4); ++i) {
    const int at = form.d_is_f16 ? 128 * i : i % 2 * 4 + i / 2 * 256;
    load_c += fmt::format("ld.global.b32 %c{}, [%at+{}];\n", i, kC + static_cast<std::size_t>(at));
    store_d += fmt::format("st.global.b32 [%at{}], %c{};\n", at == 0 ? "" : fmt::format("+{}", at), i);
    registers += fmt::format("{}%c{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format(R"(.version 8.8
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry test(.param .align 64 .b8 p[16])
{{
.reg .b64 %steps, %results, %step, %at, %descriptor;
.reg .b32 %thread, %cta, %row, %column, %word, %s, %a<4>, %c<4>, %n, %k, %low;
.reg .b16 %h;
.reg .pred %accumulate;
ld.param.u64 %steps, [p];
ld.param.u64 %results, [p+8];
mov.u32 %thread, %tid.x;
mov.u32 %cta, %ctaid.x;
mad.wide.u32 %step, %cta, {step_bytes}, %steps;
mad.wide.u32 %results, %cta, {result_bytes}, %results;
// B: core matrices of 8 columns by 8 k, 128 bytes each. A thread carries one element.
shr.u32 %n, %thread, 4;
and.b32 %k, %thread, 15;
mad.wide.u32 %at, %thread, 2, %step;
ld.global.b16 %h, [%at+{b}];
shr.u32 %word, %k, 3;
and.b32 %low, %k, 7;
mad.lo.u32 %word, %word, 8, %n;
mad.lo.u32 %word, %word, 8, %low;
mov.u32 %s, dynamic;
mad.lo.u32 %word, %word, 2, %s;
st.shared.b16 [%word], %h;
fence.proxy.async.shared::cta;
bar.sync 0;
// A and C: rows %row and %row + 8, columns %column and %column + 1 (k also + 8).
shr.u32 %row, %thread, 5;
shl.b32 %row, %row, 4;
and.b32 %word, %thread, 31;
shr.u32 %low, %word, 2;
add.u32 %row, %row, %low;
and.b32 %column, %thread, 3;
shl.b32 %column, %column, 1;
mad.lo.u32 %word, %row, 16, %column;
mad.wide.u32 %at, %word, 2, %step;
ld.global.b32 %a0, [%at+{a}];
ld.global.b32 %a1, [%at+{a_below}];
ld.global.b32 %a2, [%at+{a_right}];
ld.global.b32 %a3, [%at+{a_both}];
mad.lo.u32 %word, %row, 8, %column;
mad.wide.u32 %at, %word, {d_bytes}, %step;
{load_c}ld.global.b32 %low, [%step];
setp.ne.u32 %accumulate, %low, 0;
shr.u32 %s, %s, 4;
cvt.u64.u32 %descriptor, %s;
or.b64 %descriptor, %descriptor, 0x800080000;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.{shape_and_types} {{{d}}}, {{%a0, %a1, %a2, %a3}}, %descriptor, %accumulate, 1, 1{transposed};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %at, %word, {d_bytes}, %results;
{store_d}ret;
}}
)",
                     fmt::arg("step_bytes", sizeof(ProductStep)),
                     fmt::arg("result_bytes", d_bytes(form) * kProductRows * kProductColumns),
                     fmt::arg("a", kA), fmt::arg("a_below", kA + 256), fmt::arg("a_right", kA + 16),
                     fmt::arg("a_both", kA + 272), fmt::arg("b", kB), fmt::arg("d_bytes", d_bytes(form)),
                     fmt::arg("load_c", load_c), fmt::arg("store_d", store_d), fmt::arg("d", registers),
                     fmt::arg("shape_and_types", form.shape_and_types),
                     fmt::arg("transposed", form.type == Half::kTf32 ? "" : ", 0"));
}

// The operands as the form has them: of tf32 a value of bf16 is the upper half of a word, another one the
// rest, of which three bits count.
void store_operands(const Form& form, const Operands& x, ProductStep* step) {
  if (form.type == Half::kTf32) {
    const auto widen = [](std::uint16_t* to, const std::uint16_t* from) {
      for (int k = 0; k < kMatrixDepth / 2; ++k) {
        to[2 * k] = from[k + kMatrixDepth / 2];
        to[2 * k + 1] = from[k];
      }
    };
    for (int m = 0; m < kProductRows; ++m) widen(step->a[m], x.a[m]);
    for (int n = 0; n < kProductColumns; ++n) widen(step->b[n], x.b[n]);
  } else {
    std::memcpy(step->a, x.a, sizeof step->a);
    std::memcpy(step->b, x.b, sizeof step->b);
  }
  for (int m = 0; m < kProductRows; ++m) {
    for (int n = 0; n < kProductColumns; ++n) {
      const std::uint32_t c = x.c[n][m];
      if (form.d_is_f16) {
        const std::uint16_t rounded = to_half(std::bit_cast<float>(c), Half::kF16);
        std::memcpy(reinterpret_cast<std::byte*>(step->c) + 2 * (m * kProductColumns + n), &rounded, 2);
      } else {
        step->c[m][n] = c;
      }
    }
  }
}

Experiment steps_of(const Form& form) {
  std::vector<ProductStep> steps;
  Random random(1);
  auto x = std::make_unique<Operands>();
  const Half kind_type = form.type == Half::kTf32 ? Half::kBf16 : form.type;
  for (const OperandKind& kind : kOperandKinds) {
    for (int i = 0; i < kStepsOfAKind; ++i) {
      fill(random, kind, i, kind_type, kind_type, x.get());
      ProductStep& step = steps.emplace_back();
      step.accumulate = i % 4 != 3;
      store_operands(form, *x, &step);
    }
  }
  Experiment e;
  e.modules = {module_for(form)};
  e.grid.x = static_cast<std::uint32_t>(steps.size());
  e.block.x = 128;
  e.shared_bytes = 256;
  const auto bytes = std::as_bytes(std::span(steps));
  const std::size_t words = steps.size() * kProductRows * kProductColumns * d_bytes(form) / 4;
  e.buffers = {{"steps", {"u32", 4}, {bytes.begin(), bytes.end()}},
               {"d", {"u32", 4}, std::vector<std::byte>(4 * words, std::byte{0xa5}), words}};
  return e;
}

// ---- layouts: raw shared memory, read through descriptors of each swizzle and direction

struct Layout {
  const char* name;
  std::uint64_t swizzle;  // field of the descriptor
  // Distances in bytes, with K contiguous and with M or N contiguous.
  std::uint64_t k_leading, k_stride, mn_leading, mn_stride;
};
constexpr Layout kLayouts[] = {{"none", 0, 128, 256, 128, 256},
                               {"32", 3, 16, 256, 512, 256},
                               {"64", 2, 16, 512, 1024, 512},
                               {"128", 1, 16, 1024, 2048, 1024}};
constexpr std::uint32_t kABytes = 8192, kImageBytes = kABytes + 32768;

std::uint64_t descriptor(const Layout& layout, bool mn_major) {
  const std::uint64_t leading = mn_major ? layout.mn_leading : layout.k_leading;
  const std::uint64_t stride = mn_major ? layout.mn_stride : layout.k_stride;
  return leading / 16 << 16 | stride / 16 << 32 | layout.swizzle << 62;
}

struct Kind {
  const char *name, *types;
  int depth;
  Half values;  // of the image
  bool d_is_f16 = false;
  bool transposes = true;
};
constexpr Kind kBf16 = {"bf16", "f32.bf16.bf16", 16, Half::kBf16},
               kF16 = {"f16", "f32.f16.f16", 16, Half::kF16},
               kF16D = {"f16_d", "f16.f16.f16", 16, Half::kF16, true},
               kTf32 = {"tf32", "f32.tf32.tf32", 8, Half::kBf16, false, false};

// One warpgroup: the image to shared memory, then a product for each layout, each from the same accumulators.
class LayoutWriter {
 public:
  LayoutWriter(const Kind& kind, int n) : kind_(kind), registers_(n / (kind.d_is_f16 ? 4 : 2)), n_(n) {
    e_.block.x = 128;
    e_.shared_bytes = kImageBytes;
    Random random(static_cast<unsigned>(n));
    std::vector<std::uint16_t> image(kImageBytes / 2);
    for (std::uint16_t& x : image) x = to_half(normal(random), kind.values);
    std::vector<std::uint32_t> c(static_cast<std::size_t>(128 * registers_));
    for (std::uint32_t& x : c) {
      if (!kind.d_is_f16) {
        x = to_word(normal(random));
        continue;
      }
      x = to_half(normal(random), Half::kF16);
      x |= std::uint32_t{to_half(normal(random), Half::kF16)} << 16;
    }
    add_source("image", std::as_bytes(std::span(image)));
    add_source("c", std::as_bytes(std::span(c)));
    for (const Layout& layout : kLayouts) {
      for (const bool b_mn : {false, true}) {
        if (b_mn && !kind.transposes) continue;
        multiply(layout, nullptr, b_mn);
        for (const bool a_mn : {false, true}) {
          if (!a_mn || kind.transposes) multiply(layout, &a_mn, b_mn);
        }
      }
    }
    e_.modules = {fmt::format(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
        ".visible .entry test(.param .align 64 .b8 p[{}])\n{{\n.reg .b64 %at, %from, %base, %a, %b;\n"
        ".reg .b32 %thread, %s, %w, %d<{}>, %a<4>;\n.reg .pred %more;\nmov.u32 %thread, %tid.x;\n"
        "mov.u32 %s, dynamic;\nld.param.u64 %from, [p];\nshl.b32 %w, %thread, 2;\nFILL:\ncvt.u64.u32 %at, "
        "%w;\n"
        "add.s64 %at, %at, %from;\nld.global.b32 %d0, [%at];\nadd.u32 %d1, %s, %w;\nst.shared.b32 [%d1], "
        "%d0;\n"
        "add.u32 %w, %w, 512;\nsetp.lt.u32 %more, %w, {};\n@%more bra FILL;\nfence.proxy.async.shared::cta;\n"
        "bar.sync 0;\nshr.u32 %w, %s, 4;\ncvt.u64.u32 %base, %w;\n{}ret;\n}}\n",
        8 * e_.buffers.size(), registers_, kImageBytes, body_)};
  }
  Experiment take() { return std::move(e_); }

 private:
  void add_source(const char* name, std::span<const std::byte> bytes) {
    Buffer& buffer = e_.buffers.emplace_back();
    buffer.name = name;
    buffer.type = {"u32", 4};
    buffer.initial.assign(bytes.begin(), bytes.end());
  }

  // A from registers where `a_mn` is null: the thread's words of C serve.
  void multiply(const Layout& layout, const bool* a_mn, bool b_mn) {
    Buffer& result = e_.buffers.emplace_back();
    result.name = fmt::format("swizzle_{}_a_{}_b_{}", layout.name,
                              a_mn == nullptr ? "registers"
                              : *a_mn         ? "mn"
                                              : "k",
                              b_mn ? "mn" : "k");
    result.type = {"u32", 4};
    result.compared = static_cast<std::size_t>(128 * registers_);
    result.initial.assign(4 * result.compared, std::byte{0xa5});
    const int bytes = 4 * registers_;
    const auto place = [&](std::size_t buffer) {
      return fmt::format("ld.param.u64 %at, [p+{}];\nmad.wide.u32 %at, %thread, {}, %at;\n", 8 * buffer,
                         bytes);
    };
    body_ += place(1);
    std::string list;
    for (int i = 0; i < registers_; ++i) {
      body_ += fmt::format("ld.global.b32 %d{}, [%at+{}];\n", i, 4 * i);
      list += fmt::format("{}%d{}", i == 0 ? "" : ", ", i);
    }
    body_ += fmt::format("or.b64 %b, %base, {:#x};\nadd.s64 %b, %b, {};\n", descriptor(layout, b_mn),
                         kABytes / 16);
    std::string a = "%a";
    if (a_mn == nullptr) {
      a = "{%a0, %a1, %a2, %a3}";
      for (int i = 0; i < 4; ++i)
        body_ += fmt::format(
            "ld.param.u64 %from, [p];\nmad.wide.u32 %from, %thread, 16, %from;\n"
            "ld.global.b32 %a{}, [%from+{}];\n",
            i, 4 * i);
    } else {
      body_ += fmt::format("or.b64 %a, %base, {:#x};\n", descriptor(layout, *a_mn));
    }
    std::string transposed;
    if (kind_.transposes) {
      if (a_mn != nullptr) transposed = *a_mn ? ", 1" : ", 0";
      transposed += b_mn ? ", 1" : ", 0";
    }
    body_ += fmt::format(
        "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k{}.{} {{{}}}, {}, %b, 1, 1, 1{};\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        n_, kind_.depth, kind_.types, list, a, transposed);
    body_ += place(e_.buffers.size() - 1);
    for (int i = 0; i < registers_; ++i) body_ += fmt::format("st.global.b32 [%at+{}], %d{};\n", 4 * i, i);
  }

  Experiment e_;
  const Kind kind_;
  const int registers_, n_;  // of D a thread; columns
  std::string body_;
};

}  // namespace

std::vector<Recipe> product_experiments() {
  std::vector<Recipe> all;
  for (const Form& form : kForms) all.push_back({form.name, [&form] { return steps_of(form); }});
  const auto add = [&](const Kind& kind, int n) {
    all.push_back({fmt::format("product_layouts_{}_n{}", kind.name, n),
                   [&kind, n] { return LayoutWriter(kind, n).take(); }});
  };
  for (const int n : {64, 128, 256}) {
    add(kBf16, n);
    add(kF16, n);
  }
  add(kF16D, 64);
  add(kTf32, 128);
  return all;
}

}  // namespace flashback::emulator::testing
