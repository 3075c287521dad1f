// Sums, differences, products and powers of integers by their low 32 bits; `beyond` says that one did not fit 32 bits
// with a sign. Computed without signs: Metal's language leaves it open what becomes of an int that overflows.
bool beyond = false;

int sum(int a, int b) {
  int s = int(uint(a) + uint(b));
  if (((a ^ s) & (b ^ s)) < 0) beyond = true;
  return s;
}
int difference(int a, int b) {
  int s = int(uint(a) - uint(b));
  if (((a ^ b) & (a ^ s)) < 0) beyond = true;
  return s;
}
int product(int x, int by) {
  int z = int(uint(x) * uint(by));
  if (x == -1) {
    if (by == int(0x80000000u)) beyond = true;
  } else if (x != 0) {
    if (z / x != by) beyond = true;
  }
  return z;
}
// A negative power gives 1 or -1 for a base of 1 or -1, else 0. The base is squared only while a bit of the power is
// left, so that nothing is beyond that the result does not hold.
int power(int base, int by) {
  if (by < 0) return base == -1 && (by & 1) == 0 ? 1 : base == 1 || base == -1 ? base : 0;
  int made = 1;
  while (by > 0) {
    if ((by & 1) != 0) made = product(made, base);
    by >>= 1;
    if (by > 0) base = product(base, base);
  }
  return made;
}
