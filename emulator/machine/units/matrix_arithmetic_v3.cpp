// Matrix arithmetic in AVX2: 8 lanes a vector.
#include "emulator/machine/units/matrix_step.h"

namespace flashback::emulator {

const MatrixArithmetic* matrix_arithmetic_v3() {
  static constexpr MatrixArithmetic kAvx2 = {"AVX2",
                                             rows_from_k_major,
                                             rows_from_mn_major,
                                             rows_from_tensor_memory,
                                             columns_from_k_major,
                                             columns_from_mn_major,
                                             multiply_add,
                                             multiply_add_to_odd};
  return __builtin_cpu_supports("x86-64-v3") ? &kAvx2 : nullptr;
}

}  // namespace flashback::emulator
