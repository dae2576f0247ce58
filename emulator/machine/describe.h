// Where an instruction stands, in words.
#pragma once

#include <string>

#include "emulator/program/program.h"

namespace flashback::emulator {

// "PTX line 812 `tcgen05.wait::st.sync.aligned`, tcgen05.cuh:97 in kernel.cuh:240": the CUDA line, and the
// calls that were inlined around it.
std::string place_of(const Program& program, const Step& step);

}  // namespace flashback::emulator
