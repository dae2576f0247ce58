// The module: its header, variables, functions and entries.
#include "emulator/ptx/parser.h"

#include <fmt/format.h>

#include "emulator/ptx/grammar.h"

namespace flashback::emulator::ptx {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(Module* module) : lexer_(module->text), module_(*module) {}

  void parse() {
    while (!lexer_.at_end()) parse_item();
    if (module_.version.empty()) Lexer::fail_at({1, 1}, "the text is no PTX: it has no `.version`");
    if (module_.target.empty()) Lexer::fail_at({1, 1}, "the text has no `.target`");
  }

 private:
  void parse_item() {
    const Position at = lexer_.here();
    if (lexer_.peek() != '.') lexer_.fail_expected("a directive such as .version, .visible or .entry");
    const std::string_view word = lexer_.directive("a directive");
    if (word == ".version") {
      module_.version = lexer_.verbatim_number("a version such as 9.0");
    } else if (word == ".target") {
      module_.target = lexer_.word("a target such as sm_100a");
      while (lexer_.accept(',')) lexer_.word("an option of the target");
    } else if (word == ".address_size") {
      module_.address_size = std::uint32_t(lexer_.integer("32 or 64"));
      if (module_.address_size != 64) Lexer::fail_at(at, "the address size must be 64");
    } else if (word == ".extern") {
      extern_ = true;
    } else if (word == ".visible" || word == ".weak" || word == ".common") {
      return;
    } else if (word == ".entry") {
      parse_entry();
    } else if (word == ".func") {
      parse_function();
    } else if (word == ".file") {
      parse_file(at);
    } else if (word == ".section") {
      lexer_.word("the name of a section");
      if (lexer_.peek() != '{') lexer_.fail_expected("the `{` of the section");
      lexer_.skip_braces();
    } else if (word == ".pragma") {
      lexer_.quoted("a pragma");
      lexer_.expect(';', "a pragma");
    } else if (std::optional<Space> space = space_of(word); space && *space != Space::kParameter) {
      parse_variables(lexer_, *space, extern_, &module_.variables);
      extern_ = false;
    } else {
      Lexer::fail_at(at, fmt::format("the directive `{}` is not known at the level of the module", word));
    }
  }

  void parse_file(Position at) {
    const std::uint64_t index = lexer_.integer("a file number");
    if (index > 100'000) Lexer::fail_at(at, fmt::format("the file number {} is beyond 100000", index));
    if (module_.files.size() <= index) module_.files.resize(index + 1);
    module_.files[index] = lexer_.quoted("a file's path");
    while (lexer_.accept(',')) lexer_.integer("a time stamp or a size");
  }

  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    if (!lexer_.accept('(') || lexer_.accept(')')) return parameters;
    do parameters.push_back(parse_parameter(lexer_));
    while (lexer_.accept(','));
    lexer_.expect(')', "a parameter");
    return parameters;
  }

  void parse_extents(std::uint32_t (&extents)[3]) {
    extents[0] = extents[1] = extents[2] = 1;
    int i = 0;
    do {
      const Position at = lexer_.here();
      const std::uint64_t extent = lexer_.integer("an extent");
      if (i == 3 || extent == 0 || extent > 0x7fffffff)
        Lexer::fail_at(at, "expected up to three positive extents");
      extents[i++] = std::uint32_t(extent);
    } while (lexer_.accept(','));
  }

  void parse_entry() {
    Entry entry;
    entry.at = lexer_.here();
    entry.name = lexer_.word("the name of an entry");
    entry.parameters = parse_parameters();
    for (Parameter& p : entry.parameters) {
      p.offset = (entry.parameter_bytes + p.alignment - 1) / p.alignment * p.alignment;
      entry.parameter_bytes = p.offset + p.bytes;
    }
    while (lexer_.peek() == '.') {
      const Position at = lexer_.here();
      const std::string_view word = lexer_.directive("a directive");
      if (word == ".maxntid") {
        parse_extents(entry.max_threads);
      } else if (word == ".reqntid") {
        parse_extents(entry.required_threads);
      } else if (word == ".reqnctapercluster") {
        parse_extents(entry.cluster);
      } else if (word == ".minnctapersm") {
        entry.min_ctas_per_sm = std::uint32_t(lexer_.integer("a number of CTAs"));
      } else if (word == ".maxnreg") {
        entry.max_registers = std::uint32_t(lexer_.integer("a number of registers"));
      } else if (word == ".maxclusterrank") {
        entry.max_cluster = std::uint32_t(lexer_.integer("a number of CTAs"));
      } else if (word == ".pragma") {
        lexer_.quoted("a pragma");
        lexer_.expect(';', "a pragma");
      } else if (word == ".blocksareclusters") {
        Lexer::fail_at(at, fmt::format("the directive `.blocksareclusters` of entry `{}` is not provided: a "
                                       "launch's grid counts CTAs, not clusters",
                                       entry.name));
      } else if (word == ".explicitcluster") {
        entry.explicit_cluster = true;
      } else {
        Lexer::fail_at(
            at, fmt::format("the directive `{}` of entry `{}` is not known; known are .maxntid, .reqntid, "
                            ".minnctapersm, .maxnreg, .reqnctapercluster, .explicitcluster, "
                            ".maxclusterrank, .pragma",
                            word, entry.name));
      }
    }
    lexer_.expect('{', "the head of an entry");
    entry.body = parse_body(lexer_);
    module_.entries.push_back(std::move(entry));
  }

  void parse_function() {
    Function function;
    if (lexer_.peek() == '(') function.results = parse_parameters();
    function.at = lexer_.here();
    function.name = lexer_.word("the name of a function");
    function.parameters = parse_parameters();
    while (lexer_.peek() == '.') lexer_.directive("a directive");
    if (lexer_.accept('{')) {
      function.is_defined = true;
      function.body = parse_body(lexer_);
    } else {
      lexer_.expect(';', "the declaration of a function");
    }
    extern_ = false;
    module_.functions.push_back(std::move(function));
  }

  Lexer lexer_;
  Module& module_;
  bool extern_ = false;
};

}  // namespace

ParseResult parse(std::string_view text) {
  ParseResult result{std::make_unique<Module>(), {}};
  result.module->text = text;
  try {
    ModuleParser(result.module.get()).parse();
  } catch (const SyntaxError& error) {
    return {nullptr, error.what()};
  }
  return result;
}

}  // namespace flashback::emulator::ptx
