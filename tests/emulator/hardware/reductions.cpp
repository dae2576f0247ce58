// Reductions in memory: rounding, subnormals, infinities and NaNs of what cp.reduce.async.bulk, red and atom
// leave there. Each word is touched once.
#include <fmt/format.h>

#include <cstring>
#include <random>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {
namespace {

constexpr std::uint32_t kWords = 4096;

constexpr std::string_view kHead =
    ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
    ".visible .entry test(.param .align 64 .b8 p[16])\n{\n"
    ".reg .b32 %i, %s, %v, %first, %cta, %word;\n.reg .b64 %to, %from, %x;\n.reg .pred %p;\n"
    "ld.param.u64 %to, [p];\nld.param.u64 %from, [p+8];\nmov.u32 %cta, %ctaid.x;\nmov.u32 %i, %tid.x;\n"
    "mad.lo.u32 %i, %cta, 256, %i;\nmov.u32 %v, %tid.x;\nmov.u32 %s, dynamic;\nmad.lo.u32 %s, %v, 4, %s;\n"
    "setp.eq.u32 %p, %v, 0;\nmad.wide.u32 %to, %i, 4, %to;\nmad.wide.u32 %from, %i, 4, %from;\n"
    "ld.global.b32 %v, [%from];\n";

// Each CTA of 256 threads sends its 1 KiB in one bulk reduction.
std::string by_bulk() {
  return std::string(kHead) +
         "st.shared.b32 [%s], %v;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@!%p bra DONE;\n"
         "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%to], [%s], 1024;\n"
         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE:\nret;\n}\n";
}
// The same through a one-dimensional tensor map.
std::string by_tensor() {
  std::string text(kHead);
  const auto replace = [&](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("p[16]", "p[144]");
  replace("[p];", "[p+128];");
  replace("[p+8];", "[p+136];");
  return text +
         "st.shared.b32 [%s], %v;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@!%p bra DONE;\n"
         "mov.b64 %x, p;\ncvta.param.u64 %x, %x;\n"
         "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%x, {%i}], [%s];\n"
         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE:\nret;\n}\n";
}
std::string in_global(std::string_view instruction) {
  return fmt::format("{}{}\nret;\n}}\n", kHead, instruction);
}
// The word goes to shared memory, is changed there and comes back.
std::string in_shared(std::string_view instruction) {
  return fmt::format(
      "{}ld.global.b32 %word, [%to];\nst.shared.b32 [%s], %word;\n{}\nld.shared.b32 %word, [%s];\n"
      "st.global.b32 [%to], %word;\nret;\n}}\n",
      kHead, instruction);
}

// Pairs of floats: special values, close magnitudes, sums around the smallest normal number, any bits.
std::uint32_t float_word(std::mt19937& random, std::uint32_t other) {
  constexpr std::uint32_t kSpecials[] = {0,          1,          0x007fffff, 0x00800000,
                                         0x00800001, 0x3f800000, 0x33800000, 0x7f7fffff,
                                         0x7f800000, 0x7fc00000, 0x7f800001, 0x00400000};
  const std::uint32_t sign = random() & 0x80000000;
  switch (random() % 5) {
    case 0:
      return sign | kSpecials[random() % std::size(kSpecials)];
    case 1:
      return sign | (random() & 0x01ffffff);
    case 2:
      return (other ^ 0x80000000) + random() % 5 - 2;
    case 3:
      return sign | (0x3f800000 + (random() & 0x03ffffff));
    default:
      return random();
  }
}

Experiment experiment(std::string module, bool of_floats) {
  Experiment e;
  e.modules = {std::move(module)};
  e.block.x = 256;
  e.grid.x = kWords / 256;
  e.shared_bytes = 1024;
  std::vector<std::uint32_t> to(kWords), from(kWords);
  std::mt19937 random(7);
  for (std::uint32_t i = 0; i < kWords; ++i) {
    to[i] = of_floats ? float_word(random, i) : random() >> random() % 32;
    from[i] = of_floats ? float_word(random, to[i]) : random() >> random() % 32;
  }
  const auto bytes = [](const std::vector<std::uint32_t>& words) {
    const auto all = std::as_bytes(std::span(words));
    return std::vector<std::byte>(all.begin(), all.end());
  };
  e.buffers = {{"to", {"u32", 4}, bytes(to), kWords}, {"from", {"u32", 4}, bytes(from)}};
  return e;
}

// Through a map over all words.
Experiment tensor_experiment() {
  Experiment e = experiment(by_tensor(), true);
  TensorMapRequest request;
  request.type = ElementType::kF32;
  request.swizzle = Swizzle::kNone;
  request.rank = 1;
  request.dims[0] = kWords;
  request.box[0] = 256;
  e.maps = {{request, 0}};
  return e;
}

}  // namespace

std::vector<Recipe> reduction_experiments() {
  std::vector<Recipe> all;
  const auto add = [&](const std::string& name, std::string module, bool of_floats) {
    all.push_back({"reduce_" + name, [=] { return experiment(module, of_floats); }});
  };
  add("bulk_add_f32", by_bulk(), true);
  add("red_global_add_f32", in_global("red.global.add.f32 [%to], %v;"), true);
  add("atom_global_add_f32", in_global("atom.global.add.f32 %word, [%to], %v;"), true);
  add("red_shared_add_f32", in_shared("red.shared.add.f32 [%s], %v;"), true);
  add("atom_shared_add_f32", in_shared("atom.shared.add.f32 %first, [%s], %v;"), true);
  all.push_back({"reduce_tensor_add_f32", tensor_experiment});
  for (const char* operation : {"add.u32", "min.u32", "max.u32", "min.s32", "max.s32", "inc.u32", "dec.u32",
                                "and.b32", "or.b32", "xor.b32"}) {
    std::string name = operation;
    name[name.find('.')] = '_';
    add("red_global_" + name, in_global(fmt::format("red.global.{} [%to], %v;", operation)), false);
    add("red_shared_" + name, in_shared(fmt::format("red.shared.{} [%s], %v;", operation)), false);
  }
  return all;
}

}  // namespace flashback::emulator::testing
