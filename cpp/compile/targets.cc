// Parsing of targets; the list of built-in back ends.
#include "compile/targets.h"

namespace pinnace {

#define BACKEND(name) const Backend& name##_backend();
#include "backends/backends.inc"
#undef BACKEND

std::span<const Backend* const> all_backends() {
  static const Backend* const backends[] = {
#define BACKEND(name) &name##_backend(),
#include "backends/backends.inc"
#undef BACKEND
  };
  return backends;
}

std::vector<const Backend*> known_backends(std::span<const Backend* const> extra) {
  std::vector<const Backend*> known(extra.begin(), extra.end());
  known.insert(known.end(), all_backends().begin(), all_backends().end());
  return known;
}

namespace {

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

void settle_precision(const Backend& backend, TargetSpec& spec) {
  if (spec.precision == "auto") spec.precision = backend.fastest_precision(spec);
}

Result<TargetChoice> find_target(std::string_view item, std::string_view precision,
                                 std::span<const Backend* const> extra) {
  if (item.empty()) return invalid("target '' is empty");
  const size_t colon = item.find(':');
  if (colon + 1 == item.size()) return invalid("target '", item, "': there is nothing after the colon");
  TargetSpec spec{std::string(item.substr(0, colon)),
                  colon == std::string_view::npos ? "" : std::string(item.substr(colon + 1)), std::string(precision)};
  std::string names = "auto";
  for (const Backend* b : known_backends(extra)) {
    if (b->name() == spec.backend) {
      if (const std::string problem = b->unknown_variant(spec); !problem.empty()) {
        return invalid("target '", item, "': ", problem);
      }
      settle_precision(*b, spec);
      return TargetChoice{b, std::move(spec), ""};
    }
    names += str_cat(", ", b->name());
  }
  // Names that pinnace gives a meaning, whether or not the back end is built in: asking for them is no mistake.
  for (const std::string_view name : {"vulkan", "metal", "softmetal", "nnapi"}) {
    if (name == spec.backend) return unsupported("target '", item, "' is not in this build, which has ", names);
  }
  return invalid("target '", item, "' is not known; this build has ", names);
}

Result<std::vector<TargetChoice>> parse_targets(std::string_view text, std::string_view precision,
                                                std::span<const Backend* const> extra, const Service& service) {
  if (precision != "fp32" && precision != "fp16" && precision != "bf16" && precision != "auto") {
    return invalid("precision '", precision, "' is not one of fp32, fp16, bf16, auto");
  }
  std::vector<TargetChoice> choices;
  if (text == "auto" || text == kAutoFixed) {
    for (const Backend* b : known_backends(extra)) {
      TargetSpec spec{std::string(b->name()), "", std::string(precision), true, false, service};
      settle_precision(*b, spec);
      if (b->automatic() && b->unavailable(spec).empty()) choices.push_back({b, std::move(spec), ""});
    }
    return choices;
  }
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    PINNACE_ASSIGN(TargetChoice choice, find_target(item, precision, extra));
    choice.spec.service = service;
    if (const std::string reason = choice.backend->unavailable(choice.spec); !reason.empty()) {
      return unsupported("target '", item, "' cannot run here: ", reason);
    }
    choices.push_back(std::move(choice));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return choices;
}

}  // namespace pinnace
