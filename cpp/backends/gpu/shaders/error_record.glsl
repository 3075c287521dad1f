// What a kernel finds wrong with its operands: the host reads the record after the run. ERROR_RECORD is the binding. Of
// several invocations that find something one remains, as a whole or mixed: each number is one that was found.
// Codes are those of DeviceError in backends/gpu/lowering.h.
layout(set = 0, binding = ERROR_RECORD) writeonly buffer ErrorRecord { int record[]; };
void report(int code, int value, int size) {
  record[0] = code;
  record[1] = value;
  record[2] = size;
}
const int kIndexOutside = 1;   // value: the index, size: of the dimension
const int kBeyond32Bits = 2;   // a 64-bit integer that 32 bits do not hold
const int kDivisorZero = 3;
const int kBoxOutside = 4;     // a box that this kernel does not sample
const int kUndecided = 5;      // a number too near to where the reference stores another byte
const int kLengthOutside = 6;  // value: the length, size: the most that it may be

// Integers of the graph, all held in 32 bits: HELD says what they are. 0: 32 bits, or bool; 1: i8, 2: u8, 3: i16,
// 4: u16; 5: 64 bits, of which only those that fit 32 can be held.
int held(int kind, int v) {
  switch (kind) {
    case 1: return (v << 24) >> 24;
    case 2: return v & 255;
    case 3: return (v << 16) >> 16;
    case 4: return v & 65535;
  }
  return v;
}
