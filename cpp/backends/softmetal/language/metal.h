// The Metal Shading Language as C++ for clang: translated kernels include this and nothing after it, for its keywords
// and vector constructors are macros. Not modelled: address spaces, what Apple's compiler refuses, fast-math rounding,
// textures, memory order between threadgroups, registers and speed.
#pragma once

#ifndef __clang__
#error "translated Metal kernels need clang 16 or later"
#endif

#include "backends/softmetal/language/simd.h"

#pragma clang diagnostic ignored "-Wunknown-attributes"
#pragma clang diagnostic ignored "-Wduplicate-decl-specifier"
#pragma clang diagnostic ignored "-Wunused-const-variable"

using namespace metal;

#define kernel
#define device
#define thread
#define threadgroup
#define constant const
#define is_function_constant_defined(x) (x##_is_defined)

#define float2(...) ::metal::make<::metal::float2>(__VA_ARGS__)
#define float3(...) ::metal::make<::metal::float3>(__VA_ARGS__)
#define float4(...) ::metal::make<::metal::float4>(__VA_ARGS__)
#define half2(...) ::metal::make<::metal::half2>(__VA_ARGS__)
#define half3(...) ::metal::make<::metal::half3>(__VA_ARGS__)
#define half4(...) ::metal::make<::metal::half4>(__VA_ARGS__)
#define int2(...) ::metal::make<::metal::int2>(__VA_ARGS__)
#define int3(...) ::metal::make<::metal::int3>(__VA_ARGS__)
#define int4(...) ::metal::make<::metal::int4>(__VA_ARGS__)
#define uint2(...) ::metal::make<::metal::uint2>(__VA_ARGS__)
#define uint3(...) ::metal::make<::metal::uint3>(__VA_ARGS__)
#define uint4(...) ::metal::make<::metal::uint4>(__VA_ARGS__)
#define short2(...) ::metal::make<::metal::short2>(__VA_ARGS__)
#define short3(...) ::metal::make<::metal::short3>(__VA_ARGS__)
#define short4(...) ::metal::make<::metal::short4>(__VA_ARGS__)
#define ushort2(...) ::metal::make<::metal::ushort2>(__VA_ARGS__)
#define ushort3(...) ::metal::make<::metal::ushort3>(__VA_ARGS__)
#define ushort4(...) ::metal::make<::metal::ushort4>(__VA_ARGS__)
#define char2(...) ::metal::make<::metal::char2>(__VA_ARGS__)
#define char3(...) ::metal::make<::metal::char3>(__VA_ARGS__)
#define char4(...) ::metal::make<::metal::char4>(__VA_ARGS__)
#define uchar2(...) ::metal::make<::metal::uchar2>(__VA_ARGS__)
#define uchar3(...) ::metal::make<::metal::uchar3>(__VA_ARGS__)
#define uchar4(...) ::metal::make<::metal::uchar4>(__VA_ARGS__)
#define ulong2(...) ::metal::make<::metal::ulong2>(__VA_ARGS__)
