// Predicted suites as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/suites.h"

namespace flashback::program {

nlohmann::ordered_json interval_json(const bench::Interval& interval);
nlohmann::ordered_json to_json(bench::Suite suite, const bench::SuiteResult& result);
std::string to_text(bench::Suite suite, const bench::SuiteResult& result);

}  // namespace flashback::program
