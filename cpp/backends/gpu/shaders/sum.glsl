// Sums of many floats by one invocation, over SUMMAND, which is float unless it is defined. Of 64 summands each the sum
// goes to the next level, of 64 of those to the one above: an element is rounded into at most 64 sums of every level,
// so that the error of n equal summands is some 100 roundings instead of n. Compensated sums (Kahan's) would need
// compilers that keep a + b - a, and make NaN of infinities.
#ifndef SUMMAND
#define SUMMAND float
#endif

struct Sum {
  SUMMAND level0, level1, level2, level3;
  int count;
};

Sum no_sum() {
  SUMMAND zero = SUMMAND(0.0);
  return Sum(zero, zero, zero, zero, 0);
}
void add(inout Sum s, SUMMAND v) {
  s.level0 += v;
  s.count++;
  if ((s.count & 63) == 0) {
    s.level1 += s.level0;
    s.level0 = SUMMAND(0.0);
    if ((s.count & 4095) == 0) {
      s.level2 += s.level1;
      s.level1 = SUMMAND(0.0);
      if ((s.count & 262143) == 0) {
        s.level3 += s.level2;
        s.level2 = SUMMAND(0.0);
      }
    }
  }
}
SUMMAND result_of(Sum s) {
  return (s.level0 + s.level1) + (s.level2 + s.level3);
}
