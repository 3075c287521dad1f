// How long Vulkan's instances live: hardware's driver stays open with the process, software's does not.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "backends/vulkan/loader.h"
#include "cpp/child_process.h"
#include "cpp/gpu/gpu_device.h"

namespace pinnace::testing {
namespace {

TEST(VulkanInstances, OneIsKeptForTheProcess) {
  PINNACE_NEEDS_GPU();
  // What is kept would be kept in the whole test program.
  const Child child({});
  if (!child.here()) return;
  const vulkan::Instance* first = nullptr;
  {
    const auto instance = vulkan::Instance::open(false, true);
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    first = instance->get();
  }
  const auto again = vulkan::Instance::open(false);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->get(), first);
  EXPECT_FALSE((*again)->devices().empty());
  // With the layer it is another, which ends with its users.
  std::weak_ptr<vulkan::Instance> checked;
  {
    const auto instance = vulkan::Instance::open(true);
    ASSERT_TRUE(instance.ok());
    EXPECT_NE(instance->get(), first);
    checked = *instance;
  }
  EXPECT_TRUE(checked.expired());
  const pid_t pid = fork();
  if (pid == 0) _exit(vulkan::forbidden().find("forked") == std::string::npos ? 1 : 0);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0) << "a forked child keeps its hands off it";
}

TEST(VulkanInstances, OfSoftwareAloneEndWithTheirUsers) {
  PINNACE_NEEDS_GPU();
  if (!vulkan::look(0).software) GTEST_SKIP() << "this machine has a GPU";
  const Child child({});
  if (!child.here()) return;
  std::weak_ptr<vulkan::Instance> ended;
  {
    const auto instance = vulkan::Instance::open(false);
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    ended = *instance;
  }
  EXPECT_TRUE(ended.expired());
}

}  // namespace
}  // namespace pinnace::testing
