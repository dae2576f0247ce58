// The CUDA that the libraries say they are.
#pragma once

namespace flashback::emulator::cuda {

// Of the driver. Later than 13.1: for drivers up to that one CUTLASS clears a bit of encoded tensor maps,
// which makes up for a defect that is not here.
inline constexpr int kDriverVersion = 13020;

}  // namespace flashback::emulator::cuda
