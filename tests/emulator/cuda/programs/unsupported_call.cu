// Calls what the emulator does not provide, twice. Exits with what it was told.
#include "check.h"

int main() {
  cudaGraph_t graph;
  SAY(cudaGraphCreate(&graph, 0));
  SAY(cudaGraphCreate(&graph, 0));
  return cudaGraphCreate(&graph, 0) == cudaErrorNotSupported ? 17 : 0;
}
