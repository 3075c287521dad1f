// A graph with everything in it, for tests of what reads, writes, copies and checks graphs.
#pragma once

#include "graph/graph.h"

namespace pinnace::testing {

/// Its text form, exactly as print() writes it.
inline constexpr const char kEverythingText[] = R"(graph "main \"quoted\" \\ \x01\n" {
  symbol batch 1..8 multiple 1
  symbol "N + 1" 0..inf multiple 16
  input %x : f32[batch,3,?,?<=8]
  input %"odd name/0" : u8["N + 1"]
  state "h" %h : f32[1,4] next %h2 = {0,-0,1.5,nan}
  const %w : f32[2] = {0.1,-inf}
  const %f16 : f16[2] = {0.33325195,65504}
  const %bf16 : bf16[2] = {3.390625,nan}
  const %f64 : f64[2] = {0.1,1e-300}
  const %i8 : i8[2]{scale 0.5, zero 3} = {-128,127}
  const %u8 : u8[2,2]{scales [0.5,0.25], zeros [0,255], axis 1} = {0,1,2,255}
  const %i16 : i16[1] = {-32768}
  const %u16 : u16[1] = {65535}
  const %i32 : i32[] = {-2147483648}
  const %u32 : u32[1] = {4294967295}
  const %i64 : i64[1] = {-9223372036854775808}
  const %u64 : u64[1] = {18446744073709551615}
  const %flags : bool[3] = {1,0,1}
  const %i4 : i4[3]{scales [1,2,3], zeros [0,-8,7], axis 0, block 1} = {-8,7,-1}
  const %u4 : u4[2,2] = {0,15,3,8}
  const %i2 : i2[5] = {-2,-1,0,1,-2}
  const %f8 : f8e5m2[4] = {57344,-inf,nan,1.5258789e-05}
  const %f6 : f6e2m3[3] = {7.5,-0.125,1}
  const %f4 : f4e2m1[3] = {6,-0.5,1.5}
  const %empty : f32[0,3] = {}
  %y : f32[2,?], %_z.1 : i64[2,?<=8] = top_k@11 "node name" (%x, %w, none) {alpha=1.0, axis=-1, beta=-0.5, big=1e+30, body=graph "b" {
    input %in : f32[batch]
    const %c : i64[1] = {1}
    %out : f32[batch] = inner@1 "n" (%in, %c) {body=graph "deep" {
    }}
    output "" %out
    output "" %out
  }, gamma=nan, mode="x\"y", names=["a","b, c"], no_floats=floats[], no_ints=ints[], no_strings=strings[], "odd attr"=inf, pads=[1,-2], scales=[0.5,2.0,-inf]} at "net.py":41 in "layers.1"
  %h2 : f32[1,4] = "aten::foo"@1 "update" (%h) at "net.py"
  %last : i8[4]{scale 0.5, zero 3} = relu@1 "" (%i8) in "m"
  output "logits" %y
  output "again" %y
  output "state too" %h2
}
)";

/// The sample, which verifies.
Graph graph_with_everything();

}  // namespace pinnace::testing
