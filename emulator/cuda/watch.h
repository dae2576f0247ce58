// `flashback emulate --check`: the checker on every launch of the program, and what it found, at the end.
#pragma once

#include "emulator/machine/observer.h"

namespace flashback::emulator::cuda {

// As the environment says (environment.h); null where nothing is to be checked. When the program ends, the
// findings are written; with any, the exit code of one that ends well is 1.
Observer* chosen_observer();

}  // namespace flashback::emulator::cuda
