// Device files: what the list finds, and that a machine without any has nothing for "auto" to look for.
#if !defined(__aarch64__)
#include "backends/vulkan/device_files.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "compile/targets.h"
#include "cpp/scratch_folder.h"

namespace pinnace::testing {
namespace {

namespace fs = std::filesystem;
using vulkan::files_there;

class DeviceFiles : public ::testing::Test {
 protected:
  const fs::path base = scratch_folder() / ("device_files_" + std::to_string(getpid()));
  void SetUp() override {
    fs::remove_all(base);
    fs::create_directories(base / "dri");
  }
  void TearDown() override {
    fs::remove_all(base);
    unsetenv("PINNACE_GPU_DEVICE_FILES");
    unsetenv("PINNACE_GPU_OPTIONS");
  }
  std::string touch(const char* name) const {
    std::ofstream(base / name).put('x');
    return (base / name).string();
  }
  std::string at(const char* name) const { return (base / name).string(); }
};

TEST_F(DeviceFiles, AreThoseOfTheListThatAreThere) {
  const std::string list = at("dri/renderD*") + ":" + at("kgsl") + "::" + at("no folder/mali*") + ":" + at("dxg/0");
  EXPECT_EQ(files_there(list), "");
  touch("dri/card0");
  touch("dri/renderD");
  touch("dri/renderD12x");
  touch("dxg");  // a file where a folder would be
  EXPECT_EQ(files_there(list), "");
  const std::string second = touch("dri/renderD129"), first = touch("dri/renderD128"), third = touch("kgsl");
  EXPECT_EQ(files_there(list), first + " " + second + " " + third);
  EXPECT_EQ(files_there(""), "");
}

TEST_F(DeviceFiles, WhatCannotBeLookedAtMayBeThere) {
  if (geteuid() == 0) {
    const std::string endless(5000, 'a');  // a name that the system refuses, as it refuses a folder to other users
    EXPECT_EQ(files_there("/" + endless), "/" + endless);
    EXPECT_EQ(files_there("/" + endless + "/a*"), "/" + endless + "/a*");
    return;
  }
  fs::permissions(base / "dri", fs::perms::none);
  EXPECT_EQ(files_there(at("dri/renderD*")), at("dri/renderD*"));
  EXPECT_EQ(files_there(at("dri/card0")), at("dri/card0"));
  fs::permissions(base / "dri", fs::perms::owner_all);
}

TEST_F(DeviceFiles, WithoutAnyAutoHasNothingToLookFor) {
  const auto vulkan = find_target("vulkan");
  ASSERT_TRUE(vulkan.ok());
  setenv("PINNACE_GPU_DEVICE_FILES", at("nothing").c_str(), 1);
  EXPECT_EQ(vulkan->backend->signs_of_device().status().message(), "this machine has no device file of a GPU");
  setenv("PINNACE_GPU_OPTIONS", "measure_software", 1);
  EXPECT_TRUE(vulkan->backend->signs_of_device().ok());
  unsetenv("PINNACE_GPU_OPTIONS");
  setenv("PINNACE_GPU_DEVICE_FILES", touch("gpu").c_str(), 1);
  const std::string signs = *vulkan->backend->signs_of_device();
  EXPECT_EQ(signs.find(at("gpu") + " "), 0u) << signs;
  EXPECT_EQ(*vulkan->backend->signs_of_device(), signs);
  setenv("VK_DRIVER_FILES", "/another/driver.json", 1);
  EXPECT_NE(*vulkan->backend->signs_of_device(), signs);
  unsetenv("VK_DRIVER_FILES");
}

}  // namespace
}  // namespace pinnace::testing
#endif
