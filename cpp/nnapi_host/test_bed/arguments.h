// One argument of a call in a form that the test bed can look at without knowing the function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nnapi_host/neural_networks.h"

namespace pinnace::nnapi_host {

enum class ObjectKind : uint8_t { kMemory, kModel, kCompilation, kExecution, kEvent, kDevice, kBurst, kMemoryDesc };
inline constexpr const char* kObjectNames[] = {"memory", "model",  "compilation", "execution",
                                               "event",  "device", "burst",       "descriptor"};

struct Argument {
  enum class Kind : uint8_t {
    kObject,    ///< a handle of `object`
    kObjects,   ///< a list of them; the count is another argument
    kMade,      ///< where a new handle goes
    kType,      ///< ANeuralNetworksOperandType
    kChannels,  ///< ANeuralNetworksSymmPerChannelQuantParams
    kIndices,   ///< a list of uint32; the count is the argument before
    kText,
    kBytes,     ///< memory of the client
    kInteger,   ///< in `number`
    kReal,      ///< in `real`
    kResult32,  ///< where a 32-bit number goes
    kResult64,
    kResultOther,
  };
  Kind kind;
  const void* pointer = nullptr;
  int64_t number = 0;
  double real = 0;
  ObjectKind object = ObjectKind::kDevice;
  bool mutable_object = false;  ///< the call may change the object
};
using Arguments = std::span<const Argument>;

template <class T>
struct ObjectKindOf;
#define PINNACE_OBJECT(type, object)                        \
  template <>                                               \
  struct ObjectKindOf<type> {                               \
    static constexpr ObjectKind value = ObjectKind::object; \
  }
PINNACE_OBJECT(ANeuralNetworksMemory, kMemory);
PINNACE_OBJECT(ANeuralNetworksModel, kModel);
PINNACE_OBJECT(ANeuralNetworksCompilation, kCompilation);
PINNACE_OBJECT(ANeuralNetworksExecution, kExecution);
PINNACE_OBJECT(ANeuralNetworksEvent, kEvent);
PINNACE_OBJECT(ANeuralNetworksDevice, kDevice);
PINNACE_OBJECT(ANeuralNetworksBurst, kBurst);
PINNACE_OBJECT(ANeuralNetworksMemoryDesc, kMemoryDesc);
#undef PINNACE_OBJECT
template <class T>
concept Handle = requires { ObjectKindOf<T>::value; };

template <Handle T>
Argument to_argument(T* object) {
  return {.kind = Argument::Kind::kObject, .pointer = object, .object = ObjectKindOf<T>::value, .mutable_object = true};
}
template <Handle T>
Argument to_argument(const T* object) {
  return {.kind = Argument::Kind::kObject, .pointer = object, .object = ObjectKindOf<T>::value};
}
template <Handle T>
Argument to_argument(T** made) {
  return {.kind = Argument::Kind::kMade, .pointer = static_cast<const void*>(made), .object = ObjectKindOf<T>::value};
}
template <Handle T>
Argument to_argument(const T* const* list) {
  return {
      .kind = Argument::Kind::kObjects, .pointer = static_cast<const void*>(list), .object = ObjectKindOf<T>::value};
}
template <class N>
  requires std::is_arithmetic_v<N>
Argument to_argument(N number) {
  if constexpr (std::is_floating_point_v<N>) {
    return {.kind = Argument::Kind::kReal, .real = number};
  } else {
    return {.kind = Argument::Kind::kInteger, .number = static_cast<int64_t>(number)};
  }
}
template <class T>
Argument to_argument(const T* pointer) {
  using Kind = Argument::Kind;
  if constexpr (std::is_same_v<T, ANeuralNetworksOperandType>) return {.kind = Kind::kType, .pointer = pointer};
  if constexpr (std::is_same_v<T, ANeuralNetworksSymmPerChannelQuantParams>) {
    return {.kind = Kind::kChannels, .pointer = pointer};
  }
  if constexpr (std::is_same_v<T, uint32_t>) return {.kind = Kind::kIndices, .pointer = pointer};
  if constexpr (std::is_same_v<T, char>) return {.kind = Kind::kText, .pointer = pointer};
  return {.kind = Kind::kBytes, .pointer = pointer};
}
template <class T>
  requires(!Handle<T>)
Argument to_argument(T* pointer) {
  using Kind = Argument::Kind;
  if constexpr (std::is_void_v<T>) return {.kind = Kind::kBytes, .pointer = pointer};
  const auto* address = static_cast<const void*>(pointer);
  if constexpr (std::is_same_v<T, bool> || std::is_pointer_v<T>) {
    return {.kind = Kind::kResultOther, .pointer = address};
  }
  return {.kind = sizeof(std::conditional_t<std::is_void_v<T>, int, T>) == 8 ? Kind::kResult64 : Kind::kResult32,
          .pointer = address};
}

}  // namespace pinnace::nnapi_host
