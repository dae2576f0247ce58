// Where the PTX ISA (9.1) describes an instruction.
#pragma once

#include <string>
#include <string_view>

namespace flashback::emulator::testing {

// "9.7.3.6" of a form such as "fma.rn{.ftz}{.sat}.f32"; empty where the table below has no line for it.
std::string isa_section(std::string_view form);

}  // namespace flashback::emulator::testing
