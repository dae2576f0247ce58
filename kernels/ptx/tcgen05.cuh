// The fifth generation's tensor core and its memory: one CTA (cta_group::1), 16-bit operands, fp32
// accumulators. A tensor memory address is lane << 16 | column.
#pragma once

#include "kernels/ptx/mbarrier.cuh"

namespace flashback::ptx {

// Whole warp. The address of the first column is written to shared memory.
template <int columns>
__device__ inline void allocate_tensor_memory(std::uint32_t& address) {
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&address)),
      "n"(columns)
      : "memory");
}

// Whole warp. This CTA will allocate no more.
__device__ inline void relinquish_tensor_memory() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

template <int columns>
__device__ inline void free_tensor_memory(std::uint32_t address) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(columns)
               : "memory");
}

// Around every synchronisation between threads that orders tensor memory accesses: the first before the
// arrival, the second after the wait.
__device__ inline void fence_before_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ inline void fence_after_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// D = A B (+ D) for 16 of the inner dimension; A and B in shared memory. One thread.
__device__ inline void mma(std::uint32_t d, std::uint64_t a, std::uint64_t b, std::uint32_t instruction,
                           bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, accumulate;\n"
      "}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
      : "memory");
}

// The same with A in tensor memory, two elements a column.
__device__ inline void mma(std::uint32_t d, std::uint32_t a, std::uint64_t b, std::uint32_t instruction,
                           bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, accumulate;\n"
      "}" ::"r"(d),
      "r"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
      : "memory");
}

// One arrival at `barrier` when everything that this thread has issued to the tensor core is done.
__device__ inline void commit(Barrier& barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(&barrier))
               : "memory");
}

// The warp's 32 lanes, one a thread, of 32 columns. The wait is part of the statement, so that nothing that
// uses the values can be moved before it.
__device__ inline void load_columns(float (&v)[32], std::uint32_t from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, [%32];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]),
        "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]), "=f"(v[14]), "=f"(v[15]),
        "=f"(v[16]), "=f"(v[17]), "=f"(v[18]), "=f"(v[19]), "=f"(v[20]), "=f"(v[21]), "=f"(v[22]),
        "=f"(v[23]), "=f"(v[24]), "=f"(v[25]), "=f"(v[26]), "=f"(v[27]), "=f"(v[28]), "=f"(v[29]),
        "=f"(v[30]), "=f"(v[31])
      : "r"(from)
      : "memory");
}

// Twice 32 columns, both loads in flight at once.
__device__ inline void load_columns(float (&v)[32], std::uint32_t from_v, float (&w)[32],
                                    std::uint32_t from_w) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, [%64];\n"
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, [%65];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]),
        "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]), "=f"(v[14]), "=f"(v[15]),
        "=f"(v[16]), "=f"(v[17]), "=f"(v[18]), "=f"(v[19]), "=f"(v[20]), "=f"(v[21]), "=f"(v[22]),
        "=f"(v[23]), "=f"(v[24]), "=f"(v[25]), "=f"(v[26]), "=f"(v[27]), "=f"(v[28]), "=f"(v[29]),
        "=f"(v[30]), "=f"(v[31]), "=f"(w[0]), "=f"(w[1]), "=f"(w[2]), "=f"(w[3]), "=f"(w[4]), "=f"(w[5]),
        "=f"(w[6]), "=f"(w[7]), "=f"(w[8]), "=f"(w[9]), "=f"(w[10]), "=f"(w[11]), "=f"(w[12]), "=f"(w[13]),
        "=f"(w[14]), "=f"(w[15]), "=f"(w[16]), "=f"(w[17]), "=f"(w[18]), "=f"(w[19]), "=f"(w[20]),
        "=f"(w[21]), "=f"(w[22]), "=f"(w[23]), "=f"(w[24]), "=f"(w[25]), "=f"(w[26]), "=f"(w[27]),
        "=f"(w[28]), "=f"(w[29]), "=f"(w[30]), "=f"(w[31])
      : "r"(from_v), "r"(from_w)
      : "memory");
}

// Four times 32 columns side by side, all loads in flight at once.
__device__ inline void load_columns(float (&v)[4][32], std::uint32_t from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, [%128];\n"
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, [%129];\n"
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
      "}, [%130];\n"
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, [%131];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(v[0][0]), "=f"(v[0][1]), "=f"(v[0][2]), "=f"(v[0][3]), "=f"(v[0][4]), "=f"(v[0][5]),
        "=f"(v[0][6]), "=f"(v[0][7]), "=f"(v[0][8]), "=f"(v[0][9]), "=f"(v[0][10]), "=f"(v[0][11]),
        "=f"(v[0][12]), "=f"(v[0][13]), "=f"(v[0][14]), "=f"(v[0][15]), "=f"(v[0][16]), "=f"(v[0][17]),
        "=f"(v[0][18]), "=f"(v[0][19]), "=f"(v[0][20]), "=f"(v[0][21]), "=f"(v[0][22]), "=f"(v[0][23]),
        "=f"(v[0][24]), "=f"(v[0][25]), "=f"(v[0][26]), "=f"(v[0][27]), "=f"(v[0][28]), "=f"(v[0][29]),
        "=f"(v[0][30]), "=f"(v[0][31]), "=f"(v[1][0]), "=f"(v[1][1]), "=f"(v[1][2]), "=f"(v[1][3]),
        "=f"(v[1][4]), "=f"(v[1][5]), "=f"(v[1][6]), "=f"(v[1][7]), "=f"(v[1][8]), "=f"(v[1][9]),
        "=f"(v[1][10]), "=f"(v[1][11]), "=f"(v[1][12]), "=f"(v[1][13]), "=f"(v[1][14]), "=f"(v[1][15]),
        "=f"(v[1][16]), "=f"(v[1][17]), "=f"(v[1][18]), "=f"(v[1][19]), "=f"(v[1][20]), "=f"(v[1][21]),
        "=f"(v[1][22]), "=f"(v[1][23]), "=f"(v[1][24]), "=f"(v[1][25]), "=f"(v[1][26]), "=f"(v[1][27]),
        "=f"(v[1][28]), "=f"(v[1][29]), "=f"(v[1][30]), "=f"(v[1][31]), "=f"(v[2][0]), "=f"(v[2][1]),
        "=f"(v[2][2]), "=f"(v[2][3]), "=f"(v[2][4]), "=f"(v[2][5]), "=f"(v[2][6]), "=f"(v[2][7]),
        "=f"(v[2][8]), "=f"(v[2][9]), "=f"(v[2][10]), "=f"(v[2][11]), "=f"(v[2][12]), "=f"(v[2][13]),
        "=f"(v[2][14]), "=f"(v[2][15]), "=f"(v[2][16]), "=f"(v[2][17]), "=f"(v[2][18]), "=f"(v[2][19]),
        "=f"(v[2][20]), "=f"(v[2][21]), "=f"(v[2][22]), "=f"(v[2][23]), "=f"(v[2][24]), "=f"(v[2][25]),
        "=f"(v[2][26]), "=f"(v[2][27]), "=f"(v[2][28]), "=f"(v[2][29]), "=f"(v[2][30]), "=f"(v[2][31]),
        "=f"(v[3][0]), "=f"(v[3][1]), "=f"(v[3][2]), "=f"(v[3][3]), "=f"(v[3][4]), "=f"(v[3][5]),
        "=f"(v[3][6]), "=f"(v[3][7]), "=f"(v[3][8]), "=f"(v[3][9]), "=f"(v[3][10]), "=f"(v[3][11]),
        "=f"(v[3][12]), "=f"(v[3][13]), "=f"(v[3][14]), "=f"(v[3][15]), "=f"(v[3][16]), "=f"(v[3][17]),
        "=f"(v[3][18]), "=f"(v[3][19]), "=f"(v[3][20]), "=f"(v[3][21]), "=f"(v[3][22]), "=f"(v[3][23]),
        "=f"(v[3][24]), "=f"(v[3][25]), "=f"(v[3][26]), "=f"(v[3][27]), "=f"(v[3][28]), "=f"(v[3][29]),
        "=f"(v[3][30]), "=f"(v[3][31])
      : "r"(from), "r"(from + 32), "r"(from + 64), "r"(from + 96)
      : "memory");
}

// 16 columns from every thread to its lane; asynchronous until wait_stores.
__device__ inline void store_columns(std::uint32_t to, const std::uint32_t (&v)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16"
      "};" ::"r"(to),
      "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(v[8]),
      "r"(v[9]), "r"(v[10]), "r"(v[11]), "r"(v[12]), "r"(v[13]), "r"(v[14]), "r"(v[15])
      : "memory");
}

// 32 columns from every thread to its lane.
__device__ inline void store_columns(std::uint32_t to, const float (&v)[32]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
      "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32"
      "};" ::"r"(to),
      "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "f"(v[4]), "f"(v[5]), "f"(v[6]), "f"(v[7]), "f"(v[8]),
      "f"(v[9]), "f"(v[10]), "f"(v[11]), "f"(v[12]), "f"(v[13]), "f"(v[14]), "f"(v[15]), "f"(v[16]),
      "f"(v[17]), "f"(v[18]), "f"(v[19]), "f"(v[20]), "f"(v[21]), "f"(v[22]), "f"(v[23]), "f"(v[24]),
      "f"(v[25]), "f"(v[26]), "f"(v[27]), "f"(v[28]), "f"(v[29]), "f"(v[30]), "f"(v[31])
      : "memory");
}

__device__ inline void wait_stores() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

}  // namespace flashback::ptx
