/* Runs a .pnc file of a digit classifier on raw float32 images [N, 1, 8, 8], one by one, and writes the logits [N, 10]:
 * digits_c digits.pnc images.bin logits.bin */
#include <stdio.h>

#include <pinnace/pinnace.h>

static int fail(void) {
  fprintf(stderr, "%s\n", pnc_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: digits_c digits.pnc images.bin logits.bin\n");
    return 2;
  }
  FILE* images = fopen(argv[2], "rb");
  FILE* logits = fopen(argv[3], "wb");
  if (!images || !logits) {
    fprintf(stderr, "cannot open %s\n", images ? argv[3] : argv[2]);
    return 1;
  }
  pnc_program* program = NULL;
  pnc_session* session = NULL;
  if (pnc_program_open(argv[1], &program) != PNC_OK) return fail();
  pnc_options options = {"auto", "fp32", 1, 0};
  if (pnc_session_create(program, &options, &session) != PNC_OK) return fail();

  float image[8 * 8], scores[10];
  pnc_tensor input = {image, sizeof image, PNC_F32, 4, {1, 1, 8, 8}};
  pnc_tensor output = {scores, sizeof scores, PNC_F32, 2, {1, 10}};
  while (fread(image, sizeof image, 1, images) == 1) {
    if (pnc_session_run(session, &input, 1, &output, 1) != PNC_OK) return fail();
    if (fwrite(scores, sizeof scores, 1, logits) != 1) return 1;
  }
  pnc_session_close(session);
  pnc_program_close(program);
  fclose(images);
  return fclose(logits) == 0 ? 0 : 1;
}
