// Models and programs from the text of a graph, for tests of what builds and runs them.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include <pinnace/model.h>

namespace pinnace::testing {

/// As it stands, no pass applied. The text is right, or the test fails.
inline Model model_of(std::string_view text) {
  auto model = Model::parse(text, {.disabled_passes = {"all"}});
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.status().message());
  return std::move(*model);
}

inline Program program_of(std::string_view text) {
  auto program = model_of(text).build();
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.status().message());
  return std::move(*program);
}

}  // namespace pinnace::testing
