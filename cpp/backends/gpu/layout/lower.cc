// Values between dense tensors, NC4HW4 buffers and what the host reads: a change of layout is a step of its own, made
// once.
#include "backends/gpu/layout/params.h"
#include "backends/gpu/lowering.h"
#include "backends/gpu/move/params.h"

namespace pinnace::gpu {
namespace {

/// The contents of a constant as the device holds them: floats, or integers as the bits of int32.
Status as_stored(const TensorType& type, const void* data, std::span<float> to) {
  const TensorView view{&type, static_cast<std::byte*>(const_cast<void*>(data))};
  visit(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = view.data<T>();
    for (int64_t i = 0; i < view.elements(); ++i) {
      if constexpr (is_float<T>) {
        to[static_cast<size_t>(i)] = static_cast<float>(from[i]);
      } else {
        const auto wide = static_cast<int64_t>(+from[i]);
        to[static_cast<size_t>(i)] =
            std::bit_cast<float>(static_cast<int32_t>(std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX)));
      }
    }
  });
  return {};
}

std::vector<std::byte> image_params(const ImageShape& s) {
  return PushBytes(LayoutParams{.count = s.vectors(), .channels = s.C, .blocks = s.blocks(), .pixels = s.pixels})
      .copy();
}
std::vector<std::byte> byte_image_params(const ImageShape& s, DType type) {
  return PushBytes(Int8LayoutParams{.count = s.vectors(),
                                    .channels = s.C,
                                    .blocks = s.blocks(),
                                    .pixels = s.pixels,
                                    .offset = byte_offset(type)})
      .copy();
}

}  // namespace

TensorId Lowering::dense(ValueId id) {
  LoweredValue& v = value(id);
  if (dry_) return 0;
  if (v.dense != kNoTensor) return v.dense;
  const auto elements = static_cast<size_t>(v.type->elements());
  const bool floats = is_device_float(v.type->dtype);
  if (v.constant) {
    const TensorType type = *v.type;
    const void* data = v.data;
    v.dense =
        add_weight({str_cat("value ", id, v.contents, " rows"), std::max<size_t>(1, elements), f16_ && floats,
                    [type, data](std::span<float> to) { return as_stored(type, data, to); }, !v.contents.empty()});
    return v.dense;
  }
  assert(v.nc4hw4 != kNoTensor);
  const ImageShape s = image_shape(*v.type);
  v.dense = add_tensor(DeviceTensor::Place::kActivation, 0, elements * element_bytes(*v.type));
  v.dense_step = is_byte(v.type->dtype) ? int8_to_dense(v, v.dense)
                                        : add_step({{KernelId::nc4hw4_to_dense, f16_, {}},
                                                    image_params(s),
                                                    {v.nc4hw4, v.dense},
                                                    line_groups(s.vectors(), 64),
                                                    0,
                                                    static_cast<double>(elements)});
  return v.dense;
}

int32_t Lowering::int8_to_dense(const LoweredValue& v, TensorId to) {
  const ImageShape s = image_shape(*v.type);
  return add_step({{KernelId::int8_to_dense, false, {}},
                   byte_image_params(s, v.type->dtype),
                   {v.nc4hw4, to},
                   line_groups(s.vectors(), 64),
                   0,
                   static_cast<double>(s.vectors() * 4)});
}

TensorId Lowering::nc4hw4(ValueId id) {
  LoweredValue& v = value(id);
  if (dry_) return 0;
  if (v.nc4hw4 != kNoTensor) return v.nc4hw4;
  const ImageShape s = image_shape(*v.type);
  if (is_byte(v.type->dtype)) {
    const TensorId from = dense(id);
    v.nc4hw4 = add_tensor(DeviceTensor::Place::kActivation, 0, static_cast<size_t>(s.vectors()) * 4);
    v.nc4hw4_step = add_step({{KernelId::int8_to_nc4hw4, false, {}},
                              byte_image_params(s, v.type->dtype),
                              {from, v.nc4hw4},
                              line_groups(s.vectors(), 64),
                              0,
                              static_cast<double>(s.vectors() * 4)});
    return v.nc4hw4;
  }
  if (v.constant) {
    const TensorType type = *v.type;
    const void* data = v.data;
    v.nc4hw4 =
        add_weight({str_cat("value ", id, v.contents, " image"), static_cast<size_t>(s.vectors()) * 4, f16_,
                    [type, data, s](std::span<float> to) -> Status {
                      PINNACE_ASSIGN(auto dense, Scratch<float>::allocate(type.elements(), "a constant"));
                      PINNACE_TRY(as_stored(type, data, dense.span()));
                      std::fill(to.begin(), to.end(), 0.0f);
                      for (int64_t i = 0; i < type.elements(); ++i) {
                        const int64_t c = i / s.pixels % s.C, n = i / s.pixels / s.C;
                        to[static_cast<size_t>(((n * s.blocks() + c / 4) * s.pixels + i % s.pixels) * 4 + c % 4)] =
                            dense[i];
                      }
                      return {};
                    },
                    !v.contents.empty()});
    return v.nc4hw4;
  }
  assert(v.dense != kNoTensor);
  v.nc4hw4 = add_tensor(DeviceTensor::Place::kActivation, 0, static_cast<size_t>(s.vectors()) * 4 * (f16_ ? 2 : 4));
  // What the host wrote has 32 bits and is turned at once.
  KernelId kernel = KernelId::dense_to_nc4hw4;
  TensorId from = v.dense;
  if (v.dense_step >= 0 && steps_[static_cast<size_t>(v.dense_step)].kernel.id == KernelId::enter) {
    kernel = KernelId::enter_nc4hw4;
    from = steps_[static_cast<size_t>(v.dense_step)].bindings[0];
  }
  v.nc4hw4_step = add_step({{kernel, f16_, {}},
                            image_params(s),
                            {from, v.nc4hw4},
                            line_groups(s.vectors(), 64),
                            0,
                            static_cast<double>(s.vectors() * 4)});
  return v.nc4hw4;
}

void Lowering::leave(ValueId id, size_t index) {
  if (dry_) return;
  LoweredValue& v = value(id);
  const int64_t elements = v.type->elements();
  if (elements == 0) return;
  const TensorId to = add_tensor(DeviceTensor::Place::kOutput, index, static_cast<size_t>(elements) * 4);
  if (v.dense == kNoTensor && v.nc4hw4 != kNoTensor && !v.constant) {
    const ImageShape s = image_shape(*v.type);
    if (is_byte(v.type->dtype)) {
      int8_to_dense(v, to);
      return;
    }
    add_step({{KernelId::leave_nc4hw4, f16_, {}},
              image_params(s),
              {v.nc4hw4, to},
              line_groups(s.vectors(), 64),
              0,
              static_cast<double>(elements)});
    return;
  }
  if (!is_device_float(v.type->dtype)) {  // bits, which an instruction on floats may change
    MoveParams params{.count = elements, .sizes = {1, 1, 1, 1, elements}};
    params.from_strides[5] = params.to_strides[5] = 1;
    add_step({{KernelId::move_int32, false, {}},
              PushBytes(params).copy(),
              {dense(id), to},
              line_groups(elements, 64),
              0,
              static_cast<double>(elements)});
    return;
  }
  const int64_t vectors = (elements + 3) / 4;
  add_step({{KernelId::leave, f16_, {}},
            PushBytes(LayoutParams{.count = vectors}).copy(),
            {dense(id), to},
            line_groups(vectors, 64),
            0,
            static_cast<double>(elements)});
}

}  // namespace pinnace::gpu
