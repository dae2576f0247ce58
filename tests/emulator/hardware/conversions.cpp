// Tensor maps whose copies change words of fp32: TFLOAT32 and the types that flush subnormals, loaded and
// stored. One set of words holds the corners and is kept in full, the other is any bits.
#include <fmt/format.h>

#include <cstring>
#include <random>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {
namespace {

constexpr std::uint32_t kBoxWords = 256;

// Exponents at both ends and in the middle; of the fraction, the 10 bits that tf32 has and, below them,
// nothing, less than a half, a half, more.
std::vector<std::uint32_t> corners() {
  std::vector<std::uint32_t> words;
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (const std::uint32_t exponent : {0u, 1u, 127u, 254u, 255u}) {
      for (const std::uint32_t upper : {0u, 1u, 2u, 0x155u, 0x1ffu, 0x200u, 0x3ffu}) {
        for (const std::uint32_t lower : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1800u, 0x1fffu})
          words.push_back(sign | exponent << 23 | upper << 13 | lower);
      }
    }
  }
  words.resize((words.size() + kBoxWords - 1) / kBoxWords * kBoxWords, 0x3f800000);
  return words;
}

std::vector<std::uint32_t> any_bits() {
  std::mt19937 random(11);
  std::vector<std::uint32_t> words(1u << 16);
  for (std::uint32_t& word : words) {
    word = random();
    if (random() % 4 == 0) word &= 0x80ffffff;  // around the subnormals
  }
  return words;
}

// Each CTA of 256 threads moves one box.
constexpr std::string_view kHead =
    ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
    ".visible .entry test(.param .align 64 .b8 p[144])\n{\n"
    ".reg .b32 %i, %s, %m, %v, %cta;\n.reg .b64 %map, %at;\n.reg .pred %first, %done;\n"
    "mov.b64 %map, p;\ncvta.param.u64 %map, %map;\nmov.u32 %cta, %ctaid.x;\nmov.u32 %i, %tid.x;\n"
    "setp.eq.u32 %first, %i, 0;\nmov.u32 %s, dynamic;\nadd.u32 %m, %s, 1024;\nmad.lo.u32 %v, %i, 4, %s;\n"
    "shl.b32 %cta, %cta, 8;\nadd.u32 %i, %i, %cta;\nld.param.u64 %at, [p+128];\n"
    "mad.wide.u32 %at, %i, 4, %at;\n";

std::string loading() {
  return std::string(kHead) +
         "@%first mbarrier.init.shared::cta.b64 [%m], 1;\n@%first fence.mbarrier_init.release.cluster;\n"
         "bar.sync 0;\n@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 1024;\n"
         "@%first cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
         "[%s], [%map, {%cta}], [%m];\n"
         "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %done, [%m], 0;\n@!%done bra WAIT;\n"
         "ld.shared.b32 %v, [%v];\nst.global.b32 [%at], %v;\nret;\n}\n";
}

std::string storing() {
  return std::string(kHead) +
         "ld.global.b32 %i, [%at];\nst.shared.b32 [%v], %i;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
         "@!%first bra DONE;\n"
         "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {%cta}], [%s];\n"
         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE:\nret;\n}\n";
}

// The threads use the first buffer, the map the second; one of them is the source.
Experiment copy_of(ElementType type, bool is_load, const std::vector<std::uint32_t>& words) {
  Experiment e;
  e.modules = {is_load ? loading() : storing()};
  e.grid.x = static_cast<std::uint32_t>(words.size()) / kBoxWords;
  e.block.x = kBoxWords;
  e.shared_bytes = 4 * kBoxWords + 16;
  const auto source = std::as_bytes(std::span(words));
  const Buffer from = {"source", {"u32", 4}, {source.begin(), source.end()}};
  const Buffer to = {
      "result", {"u32", 4}, std::vector<std::byte>(source.size(), std::byte{0xa5}), words.size()};
  e.buffers = is_load ? std::vector{to, from} : std::vector{from, to};
  TensorMapRequest request;
  request.type = type;
  request.swizzle = Swizzle::kNone;
  request.rank = 1;
  request.dims[0] = words.size();
  request.box[0] = kBoxWords;
  e.maps = {{request, 1}};
  return e;
}

}  // namespace

std::vector<Recipe> conversion_experiments() {
  constexpr struct {
    const char* name;
    ElementType type;
  } kTypes[] = {
      {"f32_ftz", ElementType::kF32Ftz}, {"tf32", ElementType::kTf32}, {"tf32_ftz", ElementType::kTf32Ftz}};
  std::vector<Recipe> all;
  for (const auto& [name, type] : kTypes) {
    for (const bool is_load : {true, false}) {
      const std::string stem = fmt::format("convert_{}_{}", is_load ? "load" : "store", name);
      all.push_back({stem, [=, type = type] { return copy_of(type, is_load, corners()); }});
      all.push_back({stem + "_any", [=, type = type] { return copy_of(type, is_load, any_bits()); }});
    }
  }
  return all;
}

}  // namespace flashback::emulator::testing
