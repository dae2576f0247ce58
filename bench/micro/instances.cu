// The probes of every architecture.
#include "bench/micro/probes.cuh"

#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
#include "bench/micro/tensor_probes.cuh"
#endif

namespace flashback::micro {

#define PROBE(name, call)                                                                           \
  extern "C" __global__ __launch_bounds__(256, 1) void name(const __grid_constant__ Parameters p) { \
    call;                                                                                           \
  }

PROBE(probe_chain, chain(p))
PROBE(probe_convert, chains(p, convert))
PROBE(probe_exponential, chains(p, exponential))
PROBE(probe_shuffle, chains(p, shuffle))
PROBE(probe_broadcast_load, loads<0>(p))
PROBE(probe_load, loads<16>(p))
PROBE(probe_barrier, meetings(p))
PROBE(probe_token, token(p))
PROBE(probe_fence, fences(p))
PROBE(probe_copy, copies<1>(p))
PROBE(probe_copies, copies<4>(p))
PROBE(probe_reductions, reductions(p))

#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
PROBE(probe_tensor_load, (tensor_loads<1>(p)))
PROBE(probe_tensor_loads, (tensor_loads<4>(p)))
PROBE(probe_products_n64_tensor, (products<64, false>(p)))
PROBE(probe_products_n64_shared, (products<64, true>(p)))
PROBE(probe_products_n128_shared, (products<128, true>(p)))
#endif

}  // namespace flashback::micro
