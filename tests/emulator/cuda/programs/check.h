// What the test programs have in common.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// Ends the program when a call fails that must not.
#define MUST(call)                                                                       \
  do {                                                                                   \
    const cudaError_t must_error = (call);                                               \
    if (must_error != cudaSuccess) {                                                     \
      std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(must_error)); \
      std::exit(3);                                                                      \
    }                                                                                    \
  } while (false)

// Prints the name of what a call answers.
#define SAY(call) std::printf("%s: %s\n", #call, cudaGetErrorName(call))
