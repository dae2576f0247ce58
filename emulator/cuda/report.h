// The one place of the emulator that speaks: inside a program there is nobody to return a sentence to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/check/finding.h"

namespace flashback::emulator::cuda {

// Something was not done as the program asked. Each sentence is written once; when the program ends, the
// first is written again, so that nobody misses it behind a program that does not look at its errors.
void report_failure(const std::string& sentence);

// What the checker found: of each rule in each kernel the first few, as unrolled code without line
// information makes hundreds of one.
void report_findings(const std::vector<checking::Finding>& findings);

// From a handler that runs at the program's end: there is no other way to another exit code.
[[noreturn]] void end_program(int code);

// What kernels print, on standard output.
void print(std::string_view text);

}  // namespace flashback::emulator::cuda

// Called by what is generated for functions that are not provided (cmake/cuda_names.cmake): names the
// function and answers that it is not supported.
extern "C" int flashback_cuda_not_provided(const char* function);
