#include "emulator/machine/units/matrix_arithmetic.h"

namespace flashback::emulator {

const MatrixArithmetic& matrix_arithmetic() {
  static const MatrixArithmetic* const fastest =
      matrix_arithmetic_v4() != nullptr ? matrix_arithmetic_v4() : matrix_arithmetic_v3();
  return *fastest;  // the emulator as a whole needs x86-64-v3 and is not opened without
}

}  // namespace flashback::emulator
