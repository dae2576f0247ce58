// Streams and events: order, time, priorities, host functions, and what is no stream.
#include "check.h"

__global__ void multiply_add(int* value, int factor, int summand) {
  *value = *value * factor + summand;
}

int main() {
  int* value;
  MUST(cudaMallocHost(&value, sizeof *value));
  *value = 1;
  int least, greatest;
  MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::printf("priorities %d to %d\n", least, greatest);
  cudaStream_t first, second;
  MUST(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithPriority(&second, cudaStreamDefault, greatest - 3));
  int priority;
  unsigned flags;
  MUST(cudaStreamGetPriority(second, &priority));
  MUST(cudaStreamGetFlags(first, &flags));
  std::printf("priority %d, flags %u\n", priority, flags);

  cudaEvent_t begin, end, untimed;
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));
  MUST(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  MUST(cudaEventRecord(begin, first));
  multiply_add<<<1, 1, 0, first>>>(value, 10, 2);
  MUST(cudaEventRecord(untimed, first));
  MUST(cudaStreamWaitEvent(second, untimed, 0));
  multiply_add<<<1, 1, 0, second>>>(value, 10, 3);
  const auto append = [](void* data) { *static_cast<int*>(data) = *static_cast<int*>(data) * 10 + 4; };
  MUST(cudaLaunchHostFunc(second, append, value));
  MUST(cudaEventRecord(end, second));
  MUST(cudaEventSynchronize(end));
  float milliseconds = -1;
  MUST(cudaEventElapsedTime(&milliseconds, begin, end));
  std::printf("value %d, %s\n", *value, milliseconds > 0 && milliseconds < 60000 ? "some time" : "no time");
  SAY(cudaEventElapsedTime(&milliseconds, untimed, end));
  SAY(cudaStreamQuery(first));
  MUST(cudaStreamDestroy(first));
  SAY(cudaStreamSynchronize(first));
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  return *value == 1234 ? 0 : 1;
}
