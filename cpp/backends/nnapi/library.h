// The NNAPI library of this machine: found, opened once, its functions, level and devices.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/nnapi/functions.h"
#include "base/status.h"

namespace pinnace::nnapi_client {

struct DeviceInfo {
  Device* device = nullptr;  ///< null below feature level 3, where devices cannot be named
  std::string name = "the system's choice";
  std::string version;
  int type = 0;           ///< NNAPI's: 0 unknown, 1 other, 2 CPU, 3 GPU, 4 accelerator
  int feature_level = 1;  ///< 1 to 8
};

/// An opened library; it is never closed, since drivers do not survive that.
struct Library {
  std::string path;  ///< as it was found
  Functions functions;
  int feature_level = 1;  ///< of the runtime, 1 to 8
  std::vector<DeviceInfo> devices;
};

/// The library that PINNACE_NNAPI_LIBRARY names, else the system's, else the one beside this code. What was opened
/// under a path is opened once; its level and devices are asked for each time.
///
/// kUnsupported: none was found, or it lacks functions of feature level 1; the sentence names every path that was
/// tried.
Result<std::shared_ptr<const Library>> open_library();

/// The device that a model is compiled for: the one that `by_session` (Service::device) names, else
/// PINNACE_NNAPI_DEVICE, else the best of those whose level is at least `level`: accelerator, GPU, other, CPU.
/// Android's own CPU code, nnapi-reference, only if named. A library that lists no devices has one, whatever it is
/// called.
///
/// kUnsupported: the name is not there, or no device has the level; the sentence lists the devices.
Result<DeviceInfo> choose_device(const Library& library, int level, std::string_view by_session = {});

}  // namespace pinnace::nnapi_client
