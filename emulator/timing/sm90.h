// Hopper, H200.
#pragma once

#include "emulator/timing/costs.h"

namespace flashback::emulator::timing {

inline constexpr Constant kSm90[] = {
    {"fma", &Costs::fma, 1, 1, 1, false, "128 fp32 lanes a clock"},
    {"fma2", &Costs::fma2, 2, 2, 2, false, "no f32x2"},
    {"integer", &Costs::integer, 2, 2, 2, false, "64 lanes a clock"},
    {"alu", &Costs::alu, 2, 2, 2, false, "64 lanes a clock"},
    {"special", &Costs::special, 8, 8, 8.1, false, "8.08 measured, H200, 2026-11-29"},
    {"convert", &Costs::convert, 2, 2, 2.2, false, "2.17 measured, H200, 2026-11-29"},
    {"transferred", &Costs::transferred, 2, 2, 4.3, false,
     "a shuffle 4.28, measured, H200, 2026-11-29; loads faster"},
    {"arithmetic_latency", &Costs::arithmetic_latency, 4, 4, 5, false, "4 measured"},
    {"special_latency", &Costs::special_latency, 16, 20, 32, false, "unknown"},
    {"shared_ports", &Costs::shared_ports, 1, 1, 2, true,
     "counters of the H200: data pipe 65 to 75 % of the time, and less of it is faster"},
    {"shared_bytes", &Costs::shared_bytes, 128, 128, 128, false, "128 a clock"},
    {"register_bytes", &Costs::register_bytes, 128, 222, 256, false,
     "a broadcast LDS.128 takes 2.31 cycles of the SM, measured, H200, 2026-11-29; 4.27 without broadcast"},
    {"shared_latency", &Costs::shared_latency, 24, 30, 33, false, "29 to 33 measured"},
    {"fence", &Costs::fence, 6, 30, 100, false, "fence.proxy.async: unknown"},
    {"warp_sync", &Costs::warp_sync, 2, 6, 20, false, "unknown"},
    {"global_latency", &Costs::global_latency, 200, 260, 270, false, "L2 hit 200 to 270"},
    {"barrier", &Costs::barrier, 9, 22, 44, false, "as B200"},
    {"barrier_warp", &Costs::barrier_warp, 2, 2, 2, false, "as B200"},
    {"arrive", &Costs::arrive, 25, 50, 70, false, "as B200"},
    {"wake", &Costs::wake, 10, 30, 45, false, "as B200"},
    {"ask", &Costs::ask, 15, 25, 40, false, "as B200"},
    {"product_issue", &Costs::product_issue, 10, 20, 40, false, "unknown"},
    {"commit", &Costs::commit, 0, 0, 0, false, "no tcgen05"},
    {"product_floor", &Costs::product_floor, 32, 32, 32, false, "m64n64k16: N/2"},
    {"group_end", &Costs::group_end, 20, 40, 60, false, "unknown"},
    {"tensor_read_bytes", &Costs::tensor_read_bytes, 1, 1, 1, false, "no tensor memory"},
    {"tensor_write_bytes", &Costs::tensor_write_bytes, 1, 1, 1, false, "no tensor memory"},
    {"tensor_load_latency", &Costs::tensor_load_latency, 0, 0, 0, false, "no tensor memory"},
    {"tensor_store_latency", &Costs::tensor_store_latency, 0, 0, 0, false, "no tensor memory"},
    {"copy_latency", &Costs::copy_latency, 100, 240, 450, true,
     "16 KB alone take 486 cycles, measured, H200, 2026-11-29; of that 256 or more are the bytes"},
    {"small_copy_latency", &Costs::small_copy_latency, 200, 300, 600, false,
     "L2 hit, and the way of the copy"},
    {"copy_bytes", &Costs::copy_bytes, 42, 62, 64, false,
     "62 on every SM at once, measured, H200, 2026-11-29"},
    {"reduce_bytes", &Costs::reduce_bytes, 15, 15.2, 16, false,
     "15.25 on every SM at once, 3.95 TB/s, measured, H200, 2026-11-29"},
    {"reduce_alone_bytes", &Costs::reduce_alone_bytes, 15.2, 25.7, 26, false,
     "25.73 from one SM alone, measured, H200, 2026-11-30"},
    {"reduce_latency", &Costs::reduce_latency, 150, 300, 1000, false, "unknown"},
    {"launch", &Costs::launch, 1000, 1500, 3000, false, "unknown"},
    {"multiprocessors", &Costs::multiprocessors, 132, 132, 132, false, "vendor"},
    {"gigahertz", &Costs::gigahertz, 1.41, 1.53, 1.98, false, "power-limited: 1.41 to 1.78 under this load"},
    {"memory_terabytes", &Costs::memory_terabytes, 4.0, 4.2, 4.4, false, "4.0 to 4.4 measured"},
};

}  // namespace flashback::emulator::timing
