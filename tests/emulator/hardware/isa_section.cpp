#include "tests/emulator/hardware/isa_section.h"

namespace flashback::emulator::testing {
namespace {

struct Section {
  std::string_view prefix;                                  // of the form
  std::string_view number, of_floats = {}, of_halves = {};  // where the ISA tells them apart
};

// The first line whose prefix the form has.
constexpr Section kSections[] = {
    {"add", "9.7.1.1", "9.7.3.3", "9.7.4.1"},
    {"sub", "9.7.1.2", "9.7.3.4", "9.7.4.2"},
    {"mul", "9.7.1.3", "9.7.3.5", "9.7.4.3"},
    {"mad", "9.7.1.4", "9.7.3.7"},
    {"fma", "9.7.3.6", "9.7.3.6", "9.7.4.4"},
    {"div", "9.7.1.8", "9.7.3.8"},
    {"rem", "9.7.1.9"},
    {"abs", "9.7.1.10", "9.7.3.9", "9.7.4.6"},
    {"neg", "9.7.1.11", "9.7.3.10", "9.7.4.5"},
    {"min", "9.7.1.12", "9.7.3.11", "9.7.4.7"},
    {"max", "9.7.1.13", "9.7.3.12", "9.7.4.8"},
    {"popc", "9.7.1.14"},
    {"clz", "9.7.1.15"},
    {"bfind", "9.7.1.16"},
    {"fns", "9.7.1.17"},
    {"brev", "9.7.1.18"},
    {"bfe", "9.7.1.19"},
    {"bfi", "9.7.1.20"},
    {"bmsk", "9.7.1.22"},
    {"sad", "9.7.1.7"},
    {"dp4a", "9.7.1.23"},
    {"dp2a", "9.7.1.24"},
    {"testp", "9.7.3.1"},
    {"copysign", "9.7.3.2"},
    {"rcp.approx.ftz.f64", "9.7.3.14"},
    {"rcp", "9.7.3.13"},
    {"sqrt", "9.7.3.15"},
    {"rsqrt.approx.ftz.f64", "9.7.3.17"},
    {"rsqrt", "9.7.3.16"},
    {"sin", "9.7.3.18"},
    {"cos", "9.7.3.19"},
    {"lg2", "9.7.3.20"},
    {"ex2", "9.7.3.21", "9.7.3.21", "9.7.4.10"},
    {"tanh", "9.7.3.22", "9.7.3.22", "9.7.4.9"},
    {"setp", "9.7.6.2", "9.7.6.2", "9.7.7.2"},
    {"set", "9.7.6.1", "9.7.6.1", "9.7.7.1"},
    {"selp", "9.7.6.3"},
    {"slct", "9.7.6.4"},
    {"and", "9.7.8.1"},
    {"or", "9.7.8.2"},
    {"xor", "9.7.8.3"},
    {"not", "9.7.8.4"},
    {"cnot", "9.7.8.5"},
    {"lop3", "9.7.8.6"},
    {"shfl", "9.7.9.6"},
    {"shf", "9.7.8.7"},
    {"shl", "9.7.8.8"},
    {"shr", "9.7.8.9"},
    {"mov", "9.7.9.3"},
    {"prmt", "9.7.9.7"},
    {"ldmatrix", "9.7.14.5"},
    {"stmatrix", "9.7.14.5"},
    {"movmatrix", "9.7.14.5"},
    {"mma", "9.7.14.5"},
    {"ld", "9.7.9.8"},
    {"st.async", "9.7.9.12"},
    {"st", "9.7.9.11"},
    {"prefetch", "9.7.9.15"},
    {"applypriority", "9.7.9.16"},
    {"discard", "9.7.9.17"},
    {"createpolicy", "9.7.9.18"},
    {"isspacep", "9.7.9.19"},
    {"cvta", "9.7.9.20"},
    {"cvt", "9.7.9.21"},
    {"mapa", "9.7.9.23"},
    {"getctarank", "9.7.9.24"},
    {"cp.async.mbarrier", "9.7.13.15"},
    {"cp.", "9.7.9.25"},
    {"tensormap.cp_fenceproxy", "9.7.13.16"},
    {"tensormap.replace", "9.7.9.28"},
    {"bra", "9.7.12.3"},
    {"brx", "9.7.12.4"},
    {"call", "9.7.12.5"},
    {"ret", "9.7.12.6"},
    {"exit", "9.7.12.7"},
    {"bar.warp", "9.7.13.2"},
    {"barrier.cluster", "9.7.13.3"},
    {"bar", "9.7.13.1"},
    {"membar", "9.7.13.4"},
    {"fence", "9.7.13.4"},
    {"atom", "9.7.13.5"},
    {"red.async", "9.7.13.7"},
    {"redux", "9.7.13.12"},
    {"red", "9.7.13.6"},
    {"vote", "9.7.13.9"},
    {"match", "9.7.13.10"},
    {"activemask", "9.7.13.11"},
    {"griddepcontrol", "9.7.13.13"},
    {"elect", "9.7.13.14"},
    {"mbarrier", "9.7.13.15"},
    {"clusterlaunchcontrol.try_cancel", "9.7.13.17"},
    {"clusterlaunchcontrol.query_cancel", "9.7.13.18"},
    {"wgmma.mma_async", "9.7.15.5"},
    {"wgmma", "9.7.15.7"},
    {"tcgen05.alloc", "9.7.16.7"},
    {"tcgen05.dealloc", "9.7.16.7"},
    {"tcgen05.relinquish", "9.7.16.7"},
    {"tcgen05.ld", "9.7.16.8"},
    {"tcgen05.st", "9.7.16.8"},
    {"tcgen05.wait", "9.7.16.8"},
    {"tcgen05.cp", "9.7.16.9"},
    {"tcgen05.shift", "9.7.16.9"},
    {"tcgen05.mma", "9.7.16.10"},
    {"tcgen05.fence", "9.7.16.11"},
    {"tcgen05.commit", "9.7.16.12"},
    {"brkpt", "9.7.19.1"},
    {"nanosleep", "9.7.19.2"},
    {"trap", "9.7.19.4"},
    {"setmaxnreg", "9.7.19.5"},
};

bool has(std::string_view form, std::string_view piece) {
  return form.find(piece) != form.npos;
}

}  // namespace

std::string isa_section(std::string_view form) {
  for (const Section& section : kSections) {
    if (form.rfind(section.prefix, 0) != 0) continue;
    if (!section.of_halves.empty() && (has(form, "f16") || has(form, "bf16")))
      return std::string(section.of_halves);
    if (!section.of_floats.empty() && (has(form, ".f32") || has(form, ".f64")))
      return std::string(section.of_floats);
    return std::string(section.number);
  }
  return {};
}

}  // namespace flashback::emulator::testing
