// program_of: a program from the text of a graph, for tests of what runs it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <pinnace/model.h>

namespace pinnace::testing {

/// As it stands, no pass applied. The text is right, or the test fails.
inline Program program_of(const std::string& text) {
  LoadOptions options;
  options.disabled_passes = {"all"};
  auto model = Model::parse(text, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  auto program = model->build();
  EXPECT_TRUE(program.ok()) << program.status().message();
  return *program;
}

}  // namespace pinnace::testing
