// `flashback emulate` on programs of our own (programs/): what they verify themselves, what they print, how
// they end.
#include <chrono>
#include <cstdio>
#include <regex>
#include <set>

#include "tests/program/command.h"

namespace flashback::program {
namespace {

constexpr const char* kPrograms = FLASHBACK_BUILD_DIR "/tests/cuda/";

class Emulate : public Command, public ::testing::WithParamInterface<const char*> {  // a GPU
 protected:
  Outcome emulate(const std::string& program, const std::string& options = "") const {
    return run("emulate --gpu " + std::string(GetParam()) + " " + options + " " + kPrograms + program);
  }
  bool is_b200() const { return std::string(GetParam()) == "b200"; }
};

INSTANTIATE_TEST_SUITE_P(Gpus, Emulate, ::testing::Values("b200", "h200"),
                         [](const auto& info) { return std::string(info.param); });

// Without the offsets of the calls, which are the compiler's.
std::string without_places(const std::string& err) {
  return std::regex_replace(err, std::regex(" \\(called at [^)]*\\)"), "");
}

void expect_clean(const Outcome& outcome, const std::string& out) {
  EXPECT_EQ(outcome.out, out);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.code, 0);
}

TEST_P(Emulate, AddsVectors) {
  expect_clean(emulate("vector_add"), "0 wrong, pitch 512\n");
}

TEST_P(Emulate, AddsVectorsUnderOtherSchedules) {
  expect_clean(emulate("vector_add", "--schedule lazy --threads 1"), "0 wrong, pitch 512\n");
  expect_clean(emulate("vector_add", "--schedule random --seed 3"), "0 wrong, pitch 512\n");
}

TEST_P(Emulate, RunsPerThreadDefaultStreams) {
  expect_clean(emulate("vector_add_per_thread"), "0 wrong, pitch 512\n");
}

TEST_P(Emulate, ReturnsTheProgramsExitCode) {
  EXPECT_EQ(emulate("vector_add 42").code, 42);
}

TEST_P(Emulate, KeepsTheOrderOfStreams) {
  expect_clean(emulate("streams"),
               "priorities 0 to -5\n"
               "priority -5, flags 1\n"
               "value 1234, some time\n"
               "cudaEventElapsedTime(&milliseconds, untimed, end): cudaErrorInvalidResourceHandle\n"
               "cudaStreamQuery(first): cudaSuccess\n"
               "cudaStreamSynchronize(first): cudaErrorInvalidResourceHandle\n"
               "cudaGetLastError(): cudaErrorInvalidResourceHandle\n"
               "cudaGetLastError(): cudaSuccess\n");
}

TEST_P(Emulate, ChecksEveryLaunch) {
  const Outcome broken = emulate("race", "--check");
  EXPECT_EQ(broken.code, 1);
  EXPECT_EQ(broken.out, "done\n");
  EXPECT_NE(broken.err.find("flashback emulate: error race: "), std::string::npos) << broken.err;
  EXPECT_NE(broken.err.find("race.cu:10"), std::string::npos) << broken.err;
  EXPECT_NE(broken.err.find("flashback emulate: 3 found.\n"), std::string::npos) << broken.err;
  EXPECT_EQ(emulate("race with 42", "--check").code, 42);
  EXPECT_EQ(emulate("race").code, 0);

  const Outcome right = emulate("race with", "--check --strict --schedule lazy");
  EXPECT_EQ(right.code, 0);
  EXPECT_EQ(right.err, "flashback emulate: nothing found.\n");
}

TEST_P(Emulate, WritesFindingsIntoAFile) {
  const Outcome outcome = emulate("race", "--check --json findings.json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "");
  const nlohmann::json findings = nlohmann::json::parse(content(directory_ / "findings.json"))["findings"];
  ASSERT_EQ(findings.size(),
            3u);  // a warp reads before the other has begun; each reads what the other writes
  EXPECT_EQ(findings[0]["rule"], "uninitialised");
  EXPECT_EQ(findings[1]["rule"], "race");
  EXPECT_EQ(findings[1]["severity"], "error");
  EXPECT_EQ(findings[1]["kernel"], "_Z8exchangePib");
}

TEST_P(Emulate, DescribesTheGpu) {
  expect_clean(
      emulate("device"),
      std::string(is_b200() ? "1 device: NVIDIA B200, 10.0, 148" : "1 device: NVIDIA H200, 9.0, 132") +
          " multiprocessors, 49152 bytes of shared memory (232448 with opt-in), L2 " +
          (is_b200() ? "132644864" : "62914560") +
          "\n65536 registers, driver 13020\n1048576 bytes taken of " +
          (is_b200() ? "191501434880" : "150109945856") +
          "\ncudaMalloc(&memory, total): cudaErrorMemoryAllocation\n"
          "cudaMalloc(&memory, total / 2): cudaErrorMemoryAllocation\n"
          "cudaSetDevice(1): cudaErrorInvalidDevice\n"
          "cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0): cudaErrorInvalidValue\n"
          "an illegal memory access was encountered / unrecognized error code\n");
}

TEST_P(Emulate, RefusesLaunchesAsCudaDoes) {
  const Outcome outcome = emulate("launch_errors");
  EXPECT_EQ(outcome.out,
            std::string("at most 128 threads, 0 and at most 49152 bytes of shared memory, PTX ") +
                (is_b200() ? "100" : "90") +
                "\n"
                "launch(out, 0, 32, 1024): cudaErrorInvalidConfiguration\n"
                "launch(out, 1, 2048, 1024): cudaErrorInvalidConfiguration\n"
                "launch(out, 1, 256, 1024): cudaErrorLaunchOutOfResources\n"
                "launch(out, 1, 128, 100000): cudaErrorInvalidValue\n"
                "cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000): "
                "cudaErrorInvalidValue\n"
                "launch(out, 1, 128, 100000): cudaSuccess\n"
                "2 blocks on a multiprocessor\n"
                "cudaLaunchKernelEx(&config, bounded, out): cudaSuccess\n"
                "out[0] 127\n"
                "cudaMemcpy(out, out + 128, 4, cudaMemcpyDeviceToDevice): cudaErrorInvalidValue\n"
                "cudaMemcpy(out, &first, 1024, cudaMemcpyHostToDevice): cudaErrorInvalidValue\n"
                "cudaFree(out + 1): cudaErrorInvalidValue\n"
                "cudaFree(out): cudaSuccess\n"
                "cudaFree(nullptr): cudaSuccess\n"
                "cudaFuncSetAttribute(reinterpret_cast<const void*>(&first), "
                "cudaFuncAttributeMaxDynamicSharedMemorySize, 1): cudaErrorInvalidDeviceFunction\n");
  EXPECT_EQ(
      without_places(outcome.err),
      "flashback emulate: the block of _Z7boundedPi has 256 threads; the kernel is compiled for at most "
      "128.\n"
      "flashback emulate: _Z7boundedPi is launched with 100000 bytes of dynamic shared memory; its limit is "
      "49152 (the attribute MaxDynamicSharedMemorySize raises it).\n"
      "flashback emulate: 2 failures in this program's CUDA calls; the first: the block of _Z7boundedPi has "
      "256 "
      "threads; the kernel is compiled for at most 128.\n");
  EXPECT_EQ(outcome.code, 0);
}

TEST_P(Emulate, ReachesVariablesOfTheModule) {
  expect_clean(emulate("symbols"),
               "managed 5\n"
               "counter 104 and 104, managed 12, 16 bytes, factors 1 20 30 4\n"
               "cudaMemcpyToSymbol(factors, new_factors, sizeof new_factors, 12): cudaErrorInvalidValue\n"
               "cudaGetSymbolSize(&bytes, &bytes): cudaErrorInvalidSymbol\n");
}

TEST_P(Emulate, LoadsModulesByTheDriver) {
  const Outcome outcome = emulate("module");
  EXPECT_EQ(outcome.out,
            "cuDeviceGetCount(&count): CUDA_ERROR_NOT_INITIALIZED\n"
            "cuMemAlloc(&memory, 256): CUDA_ERROR_INVALID_CONTEXT\n"
            "cuModuleGetFunction(&fill, module, \"empty\"): CUDA_ERROR_NOT_FOUND\n"
            "4 bytes of bias, out 4203 to 4266\n"
            "out 103 to 166\n"
            "cuModuleLoadData(&module, \".version 8.0\\n.target sm_80\\n.entry broken(\\n\"): "
            "CUDA_ERROR_INVALID_PTX\n"
            "cuModuleLoadData(&module, \".version 8.7\\n.target sm_120a\\n.address_size 64\\n\"): "
            "CUDA_ERROR_INVALID_PTX\n"
            "cuLaunchKernel(fill, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr): "
            "CUDA_ERROR_INVALID_VALUE\n"
            "cuLaunchKernel(clustered, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr): "
            "CUDA_ERROR_INVALID_CLUSTER_SIZE\n"
            "cuLaunchKernelEx(&config, clustered, nullptr, nullptr): CUDA_SUCCESS\n"
            "cuModuleUnload(reinterpret_cast<CUmodule>(&config)): CUDA_ERROR_INVALID_HANDLE\n");
  EXPECT_NE(outcome.err.find("PTX line 4"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("PTX for sm_120a does not run on an emulated NVIDIA"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.code, 0);
}

TEST_P(Emulate, EncodesTensorMaps) {
  const Outcome outcome = emulate("tensor_map");
  EXPECT_EQ(outcome.out,
            "a function that does not exist: not found\n"
            "stride: 1\n"
            "address: 1\n"
            "box: 1\n"
            "good: 0\n"
            "0 wrong\n");
  EXPECT_NE(outcome.err.find("the stride of dimension 1 is 84 bytes"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.code, 0);
}

TEST_P(Emulate, LaunchesClusters) {
  expect_clean(emulate("cluster"),
               "clusters of 4: 101 102 103 100 105 106 107 104\n"
               "clusters of 2: 101 100 103 102 105 104 107 106\n"
               "required 2 1 1\n"
               "launch(out, 8, 3): cudaErrorInvalidClusterSize\n"
               "launch(out, 16, 16): cudaErrorInvalidClusterSize\n"
               "launch(out, 16, 16): cudaSuccess\n"
               "out[15] 100\n");
}

TEST_P(Emulate, PrintsWhatKernelsPrint) {
  expect_clean(emulate("print"),
               "before\nthread 0 of the kernel: 1.50\nthread 1 of the kernel: 1.50\nafter\n");
}

TEST_P(Emulate, NamesCallsThatAreNotProvided) {
  const Outcome outcome = emulate("unsupported_call");
  EXPECT_EQ(outcome.out,
            "cudaGraphCreate(&graph, 0): cudaErrorNotSupported\n"
            "cudaGraphCreate(&graph, 0): cudaErrorNotSupported\n");
  EXPECT_EQ(outcome.err,
            "flashback emulate: cudaGraphCreate is not provided (called at unsupported_call.cu:6).\n"
            "flashback emulate: 1 failure in this program's CUDA calls; the first: cudaGraphCreate is not "
            "provided (called at unsupported_call.cu:6).\n");
  EXPECT_EQ(outcome.code, 17);
}

// Without -g there are no lines.
TEST_P(Emulate, SaysWhereCallsThatItRefusesAre) {
  const Outcome outcome = emulate("tensor_map");
  EXPECT_TRUE(
      std::regex_search(outcome.err, std::regex("84 bytes.* \\(called at tensor_map\\+0x[0-9a-f]+\\)")))
      << outcome.err;
}

TEST_P(Emulate, NamesInstructionsThatItDoesNotHave) {
  const Outcome outcome = emulate("unsupported_instruction");
  EXPECT_EQ(outcome.out, "cudaErrorNotSupported, result 0\n");
  EXPECT_NE(outcome.err.find("vabsdiff4.u32.u32.u32"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("unsupported_instruction.cu:6"), std::string::npos) << outcome.err;
}

TEST_P(Emulate, RunsDependentLaunches) {
  expect_clean(emulate("dependent_launch"), "0 wrong\n");
}

TEST_P(Emulate, LosesTheContextByAFault) {
  const struct {
    const char *fault, *error, *place;
  } kCases[] = {
      {"bounds", "cudaErrorIllegalAddress", "fault.cu:8"},
      {"alignment", "cudaErrorMisalignedAddress", "fault.cu:8"},
      {"assertion", "cudaErrorAssert", "the assertion `value == 2` failed at "},
      {"trap", "cudaErrorLaunchFailure", "the program trapped"},
  };
  for (const auto& [fault, error, place] : kCases) {
    const Outcome outcome = emulate(std::string("fault ") + fault);
    EXPECT_EQ(outcome.out, std::string(error) + "\ncudaFree(out): " + error +
                               "\ncudaGetLastError(): " + error + "\ncudaGetLastError(): " + error + "\n");
    EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.code, 5);
  }
}

TEST_F(Command, EmulateSaysHowAProgramMustBeBuilt) {
  const Outcome outcome = run("emulate " + std::string(kPrograms) + "vector_add_compressed");
  EXPECT_NE(outcome.err.find(
                "the program carries no PTX that an emulated NVIDIA B200 can run (it carries compressed "
                "PTX for sm_100), and what nvcc has compressed is not read; build it with -gencode "
                "arch=compute_100a,code=compute_100a --no-compress ("),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.code, 3);
}

// A program that is linked to CUDA's runtime finds every function in ours. Left out: interoperation with
// graphics, whose headers are none of CUDA's, and what nvcc writes into no program.
TEST_F(Command, EmulateLinksWhatCudaLinks) {
  const auto names = [](const std::string& library) {
    std::set<std::string> names;
    FILE* nm = popen(("nm -D --defined-only " + library).c_str(), "r");
    char name[256];
    while (std::fscanf(nm, "%*x %*c %255[^@\n]%*[^\n]", name) == 1) names.insert(name);
    EXPECT_EQ(pclose(nm), 0);
    return names;
  };
  const std::set<std::string> ours = names(FLASHBACK_BUILD_DIR "/cuda/libcudart.so.13");
  const std::regex left_out(
      "cuda(.*EGL.*|.*Egl.*|GL.*|GraphicsGL.*|VDPAU.*|GraphicsVDPAU.*)|libcudart.so.13|"
      "__cuda(GetProcAddress|RegisterHostVar|RegisterUnifiedTable)");
  int compared = 0;
  for (const std::string& name : names(FLASHBACK_CUDART)) {
    if (std::regex_match(name, left_out)) continue;
    EXPECT_TRUE(ours.contains(name)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 350);
}

TEST_P(Emulate, StartsWithinAFifthOfASecond) {
  std::chrono::duration<double> fastest = std::chrono::seconds(60);
  for (int i = 0; i < 5; ++i) {  // others may be at work on this machine
    const auto begin = std::chrono::steady_clock::now();
    emulate("vector_add");
    fastest = std::min<std::chrono::duration<double>>(fastest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(fastest.count(), 0.2);
}

TEST_F(Command, EmulateRefuses) {
  expect_refused("emulate", "flashback emulate names no program to run");
  expect_refused("emulate ./nothing", "./nothing cannot be run: No such file or directory");
  expect_refused("emulate --gpu a100 ./nothing", "--gpu is a100; it must be one of b200, h200");
  expect_refused("emulate --schedule late ./nothing",
                 "--schedule is late; it must be one of eager, lazy, random");
  expect_refused("emulate --threads -1 ./nothing",
                 "--threads is -1; it must be a whole number from 0 to 1024; nearest accepted: 0");
}

}  // namespace
}  // namespace flashback::program
