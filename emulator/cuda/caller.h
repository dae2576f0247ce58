// Who called: for messages about calls.
#pragma once

#include <string>

namespace flashback::emulator::cuda {

// The place in the program that called into this library: "main.cu:12" where the program carries debugging
// information (-g) and binutils are at hand to read it, else "program+0x11ac", as addr2line takes it. Empty
// where none is found.
std::string place_of_caller();

}  // namespace flashback::emulator::cuda
