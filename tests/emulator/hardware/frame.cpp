// What a kernel finds at its start: its parameters, by loads of each width, and the registers of its
// warpgroups.
#include <fmt/format.h>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {
namespace {

Experiment one_result(std::string module, std::uint32_t threads) {
  Experiment e;
  e.modules = {std::move(module)};
  e.block.x = threads;
  Buffer& buffer = e.buffers.emplace_back();
  buffer.name = "result";
  buffer.type = {"u32", 4};
  buffer.compared = threads;
  buffer.initial.assign(4 * threads, std::byte{0xa5});
  return e;
}

constexpr std::string_view kResult =
    "ld.param.u64 %at, [p];\nmad.wide.u32 %at, %thread, 4, %at;\nst.global.u32 [%at], %sum;\nret;\n}\n";

// Adds a check to a module that counts in %sum what holds.
void expect(std::string* module, std::string_view load, std::string_view a, std::string_view b) {
  *module += fmt::format("{};\nsetp.eq.u32 %same, {}, {};\n@%same add.u32 %sum, %sum, 1;\n", load, a, b);
}

// An address is not the same on two devices; that its parts agree is.
Experiment parameters() {
  std::string module =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .align 64 .b8 p[16])\n{\n"
      ".reg .b64 %at, %wide;\n.reg .b32 %thread, %sum, %low, %high, %x, %y, %z, %w;\n.reg .f32 %f;\n"
      ".reg .b16 %h, %g;\n.reg .pred %same;\nmov.u32 %thread, %tid.x;\nmov.u32 %sum, 0;\nld.param.u64 %wide, "
      "[p];\n"
      "mov.b64 {%low, %high}, %wide;\n";
  expect(&module, "ld.param.u32 %x, [p]", "%x", "%low");
  expect(&module, "ld.param.u32 %x, [p+4]", "%x", "%high");
  expect(&module, "ld.param.f32 %f, [p];\nmov.b32 %x, %f", "%x", "%low");
  expect(&module, "ld.param.v2.u32 {%x, %y}, [p]", "%x", "%low");
  expect(&module, "ld.param.v2.u32 {%x, %y}, [p]", "%y", "%high");
  expect(&module, "ld.param.v4.u32 {%x, %y, %z, %w}, [p]", "%x", "%low");
  expect(&module, "ld.param.v4.u32 {%x, %y, %z, %w}, [p]", "%y", "%high");
  expect(&module, "ld.param.s32 %x, [p]", "%x", "%low");
  expect(&module, "ld.param.v2.u64 {%wide, %at}, [p];\nmov.b64 {%x, %y}, %wide", "%x", "%low");
  expect(&module, "ld.param.u8 %h, [p];\ncvt.u32.u16 %x, %h;\nand.b32 %y, %low, 255", "%x", "%y");
  expect(&module,
         "ld.param.v2.u8 {%h, %g}, [p];\ncvt.u32.u16 %x, %g;\nshr.u32 %y, %low, 8;\nand.b32 %y, %y, 255",
         "%x", "%y");
  Experiment e = one_result(module + std::string(kResult), 32);
  e.buffers.push_back({"second", {"u32", 4}, {}});  // v4 reads two addresses
  return e;
}

// The same for more types.
Experiment parameter_types() {
  std::string module =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .align 64 .b8 p[8])\n{\n"
      ".reg .b64 %at, %wide;\n.reg .f64 %d;\n.reg .b32 %thread, %sum, %low, %high, %x, %y;\n"
      ".reg .f32 %f, %g;\n.reg .b16 %h<4>;\n.reg .pred %same;\nmov.u32 %thread, %tid.x;\nmov.u32 %sum, 0;\n"
      "ld.param.u64 %wide, [p];\nmov.b64 {%low, %high}, %wide;\n";
  expect(&module, "ld.param.f64 %d, [p];\nmov.b64 {%x, %y}, %d", "%x", "%low");
  expect(&module, "ld.param.f64 %d, [p];\nmov.b64 {%x, %y}, %d", "%y", "%high");
  expect(&module, "ld.param.s8 %h0, [p+1];\ncvt.s32.s16 %x, %h0;\nshl.b32 %y, %low, 16;\nshr.s32 %y, %y, 24",
         "%x", "%y");
  expect(&module, "ld.param.u16 %h0, [p];\ncvt.u32.u16 %x, %h0;\nand.b32 %y, %low, 65535", "%x", "%y");
  expect(&module, "ld.param.v2.f32 {%f, %g}, [p];\nmov.b32 %x, %g", "%x", "%high");
  expect(&module,
         "ld.param.v4.u8 {%h0, %h1, %h2, %h3}, [p];\ncvt.u32.u16 %x, %h2;\nshr.u32 %y, %low, 16;\n"
         "and.b32 %y, %y, 255",
         "%x", "%y");
  return one_result(module + std::string(kResult), 32);
}

// Three warpgroups of 168 registers: one gives up what the others take.
Experiment register_pool() {
  std::string module =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .align 64 .b8 p[8])\n"
      ".maxntid 384, 1, 1\n.minnctapersm 1\n{\n.reg .b64 %at;\n.reg .b32 %thread, %sum;\n.reg .pred %first;\n"
      "mov.u32 %thread, %tid.x;\nsetp.lt.u32 %first, %thread, 128;\n@%first bra FEWER;\n"
      "setmaxnreg.inc.sync.aligned.u32 232;\nmul.lo.u32 %sum, %thread, 3;\nbra STORE;\nFEWER:\n"
      "setmaxnreg.dec.sync.aligned.u32 40;\nmul.lo.u32 %sum, %thread, 5;\nSTORE:\n";
  return one_result(module + std::string(kResult), 384);
}

// A pause, of which nothing but time is to be seen: what is in registers stays there.
Experiment pause() {
  std::string module =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .align 64 .b8 p[8])\n{\n"
      ".reg .b64 %at;\n.reg .b32 %thread, %sum;\nmov.u32 %thread, %tid.x;\nmul.lo.u32 %sum, %thread, 7;\n"
      "nanosleep.u32 100;\nadd.u32 %sum, %sum, 1;\n";
  return one_result(module + std::string(kResult), 32);
}

}  // namespace

std::vector<Recipe> frame_experiments() {
  return {{"frame_parameters", parameters},
          {"frame_parameter_types", parameter_types},
          {"frame_registers", register_pool},
          {"frame_pause", pause}};
}

}  // namespace flashback::emulator::testing
