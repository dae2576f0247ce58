// Blackwell, B200: sources in words. Nothing here was measured by this project, and nothing was fitted to
// what is to be predicted.
#pragma once

#include "emulator/timing/costs.h"

namespace flashback::emulator::timing {

inline constexpr Constant kSm100[] = {
    {"fma", &Costs::fma, 1, 1, 1, false, "128 fp32 lanes a clock"},
    {"fma2", &Costs::fma2, 2, 2, 3, false,
     "f32x2: half the issue, the same rate; 3 with three distinct sources"},
    {"integer", &Costs::integer, 2, 2, 2, false, "64 lanes a clock"},
    {"alu", &Costs::alu, 2, 2, 4, false, "64 lanes a clock; B300 measured"},
    {"special", &Costs::special, 8, 8, 8.8, false,
     "16 a clock, FlashAttention-4 paper; 27 of 32 measured on B300"},
    {"convert", &Costs::convert, 2, 2, 2.2, false,
     "cvt.rn.bf16x2.f32, one instruction on all three: 62 of 64 a clock measured on GB300, 2.17 on H200"},
    {"transferred", &Costs::transferred, 2, 2, 4, false,
     "one load/store instruction in 2 clocks and a sub-partition"},
    {"arithmetic_latency", &Costs::arithmetic_latency, 4, 4, 5, false, "4.2 measured"},
    {"special_latency", &Costs::special_latency, 16, 20, 32, false, "unknown, as on Hopper"},
    {"shared_ports", &Costs::shared_ports, 1, 2, 2, true, "see the choice of the nominal port model"},
    {"shared_bytes", &Costs::shared_bytes, 128, 128, 128, false,
     "128 a clock, FlashAttention-4 paper; fits SS limits"},
    {"register_bytes", &Costs::register_bytes, 128, 128, 512, false,
     "H200: a broadcast LDS.128 costs what 512 bytes of registers do, inferred from counters; 512 if "
     "broadcast is free"},
    {"shared_latency", &Costs::shared_latency, 24, 29, 33, false, "24 to 29 measured"},
    {"fence", &Costs::fence, 6, 30, 100, false, "fence.proxy.async: unknown"},
    {"warp_sync", &Costs::warp_sync, 2, 6, 20, false, "unknown"},
    {"global_latency", &Costs::global_latency, 283, 300, 680, false, "L2 hit; far half of the chip 680"},
    {"barrier", &Costs::barrier, 9, 22, 44, false, "22 + 2 a warp for __syncthreads; 31 for 128 threads"},
    {"barrier_warp", &Costs::barrier_warp, 2, 2, 2, false, "the same"},
    {"arrive", &Costs::arrive, 25, 50, 70, false, "arrive and test 54, and try 110: the split is unknown"},
    {"wake", &Costs::wake, 10, 30, 45, false, "the same"},
    {"ask", &Costs::ask, 15, 25, 40, false, "the same"},
    {"product_issue", &Costs::product_issue, 10, 30, 60, false,
     "of the 104 between a TS product and its waiter"},
    {"commit", &Costs::commit, 30, 44, 80, false, "the same"},
    {"product_floor", &Costs::product_floor, 32, 32, 56, false,
     "N = 64, A in tensor memory: 32.5 measured on B200, 256 in a row; 44 to 56 noted on B300, another chip"},
    {"group_end", &Costs::group_end, 0, 0, 0, false, "no wgmma"},
    {"tensor_read_bytes", &Costs::tensor_read_bytes, 50, 55, 110, false, "53 to 57 a warp, B300 measured"},
    {"tensor_write_bytes", &Costs::tensor_write_bytes, 85, 100, 128, false,
     "340 to 460 an SM, B300 measured"},
    {"tensor_load_latency", &Costs::tensor_load_latency, 30, 100, 345, true,
     "no unloaded value is published; about 200 in logs, 420 quoted, probably loaded"},
    {"tensor_store_latency", &Costs::tensor_store_latency, 20, 40, 100, false, "unknown"},
    {"copy_latency", &Costs::copy_latency, 240, 800, 1040, true,
     "B200: 16 KB in 494 at least, 256 of them its bytes; 512 bytes from memory, which takes longer, 1042"},
    {"small_copy_latency", &Costs::small_copy_latency, 400, 700, 1400, false, "the same"},
    {"copy_bytes", &Costs::copy_bytes, 32, 64, 64, false, "13 to 21 TB/s of L2"},
    {"reduce_bytes", &Costs::reduce_bytes, 14.2, 16, 32, true,
     "a published kernel at head dimension 128 needs 14.2; what would be too much, no source says"},
    {"reduce_alone_bytes", &Costs::reduce_alone_bytes, 0, 0, 0, false, "unknown: not faster"},
    {"reduce_latency", &Costs::reduce_latency, 150, 300, 1000, false, "unknown"},
    {"launch", &Costs::launch, 1000, 1500, 3000, false, "launch and tensor memory allocation (253 on B300)"},
    {"multiprocessors", &Costs::multiprocessors, 148, 148, 148, false, "vendor"},
    {"gigahertz", &Costs::gigahertz, 1.75, 1.85, 1.965, false, "1.75 to 1.85 under matrix load"},
    {"memory_terabytes", &Costs::memory_terabytes, 6.0, 6.5, 7.2, false, "7.0 to 7.3 measured reading"},
};

}  // namespace flashback::emulator::timing
