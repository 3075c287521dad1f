// The lists of a family's params.inc as members of a kernel's block of push constants.
#define PUSH_INT(name) int name;
#define PUSH_UINT(name) uint name;
#define PUSH_FLOAT(name) float name;
#define PUSH_FLOATS_8(name, f0, f1, f2, f3, f4, f5, f6, f7) \
  float f0; float f1; float f2; float f3; float f4; float f5; float f6; float f7;
#define PUSH_INTS_3(name, n0, n1, n2) int n0; int n1; int n2;
#define PUSH_INTS_5(name, n0, n1, n2, n3, n4) int n0; int n1; int n2; int n3; int n4;
#define PUSH_INTS_6(name, n0, n1, n2, n3, n4, n5) int n0; int n1; int n2; int n3; int n4; int n5;
// And as specialisation constants: number, name, value where the host gives none.
#define SPEC_INT(id, name, value) layout(constant_id = id) const int name = value;
#define SPEC_INTS_3(id, name, n0, n1, n2, value) \
  SPEC_INT(id, n0, value) SPEC_INT(id + 1, n1, value) SPEC_INT(id + 2, n2, value)
#define SPEC_INTS_4(id, name, n0, n1, n2, n3, value) \
  SPEC_INTS_3(id, name, n0, n1, n2, value) SPEC_INT(id + 3, n3, value)
