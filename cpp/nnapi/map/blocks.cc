// Blocks of pixels against channels or images, and shuffled channels: reshapes and transposes.
#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

/// Batch, height, width and channels of an image in either layout.
struct Image {
  ValueId x;
  bool nchw;
  int64_t batch, height, width, channels;
};

Result<Image> read_image(Call& call, size_t layout) {
  Image i{};
  PINNACE_ASSIGN(i.x, call.in(0));
  PINNACE_ASSIGN(i.nchw, call.flag(layout));
  if (call.rank(i.x) != 4) return call.error("takes an image, was given ", call.type(i.x));
  PINNACE_ASSIGN(i.batch, call.size(i.x, 0));
  PINNACE_ASSIGN(i.channels, call.size(i.x, i.nchw ? 1 : 3));
  PINNACE_ASSIGN(i.height, call.size(i.x, i.nchw ? 2 : 1));
  PINNACE_ASSIGN(i.width, call.size(i.x, i.nchw ? 3 : 2));
  return i;
}

Result<std::vector<int64_t>> read_blocks(Call& call) {
  PINNACE_ASSIGN(std::vector<int64_t> blocks, call.ints(1));
  if (blocks.size() != 2 || blocks[0] < 1 || blocks[1] < 1) {
    return call.error("block sizes ", list_text(std::span<const int64_t>(blocks)), " must be two, 1 or more");
  }
  return blocks;
}

}  // namespace

Status map_depth_space(Call& call) {
  PINNACE_ASSIGN(Image i, read_image(call, 2));
  PINNACE_ASSIGN(int64_t block, call.integer(1));
  if (block < 1) return call.error("block size ", block, " is below 1");
  PINNACE_ASSIGN(ValueId x, call.to_nchw(i.x, i.nchw));
  const bool to_space = call.op() == Op::DEPTH_TO_SPACE;
  PINNACE_ASSIGN(ValueId y, call.emit(to_space ? "depth_to_space" : "space_to_depth", {x}, {{"blocksize", block}}));
  PINNACE_ASSIGN(y, call.from_nchw(y, i.nchw));
  return call.finish(0, y);
}

Status map_space_to_batch_nd(Call& call) {
  PINNACE_ASSIGN(Image i, read_image(call, 3));
  PINNACE_ASSIGN(std::vector<int64_t> block, read_blocks(call));
  PINNACE_ASSIGN(std::vector<int64_t> pad, call.ints(2));  // top, bottom, left, right
  if (pad.size() != 4) return call.error(pad.size(), " pads, must be 4");
  for (int64_t p : pad) {
    if (p < 0) return call.error("pad ", p, " is negative");
  }
  const int64_t height = i.height + pad[0] + pad[1], width = i.width + pad[2] + pad[3];
  if (height % block[0] != 0 || width % block[1] != 0) {
    return call.error(height, " x ", width, " does not divide into blocks of ", block[0], " x ", block[1]);
  }
  PINNACE_ASSIGN(ValueId pads, i.nchw ? call.constant_ints({0, 0, pad[0], pad[2], 0, 0, pad[1], pad[3]})
                                      : call.constant_ints({0, pad[0], pad[2], 0, 0, pad[1], pad[3], 0}));
  PINNACE_ASSIGN(ValueId y, call.emit("pad", {i.x, pads}));
  const int64_t h = height / block[0], w = width / block[1], batch = i.batch * block[0] * block[1];
  if (i.nchw) {
    PINNACE_ASSIGN(y, call.reshape(y, {i.batch, i.channels, h, block[0], w, block[1]}));
    PINNACE_ASSIGN(y, call.transpose(y, {3, 5, 0, 1, 2, 4}));
    PINNACE_ASSIGN(y, call.reshape(y, {batch, i.channels, h, w}));
  } else {
    PINNACE_ASSIGN(y, call.reshape(y, {i.batch, h, block[0], w, block[1], i.channels}));
    PINNACE_ASSIGN(y, call.transpose(y, {2, 4, 0, 1, 3, 5}));
    PINNACE_ASSIGN(y, call.reshape(y, {batch, h, w, i.channels}));
  }
  return call.finish(0, y);
}

Status map_batch_to_space_nd(Call& call) {
  PINNACE_ASSIGN(Image i, read_image(call, 2));
  PINNACE_ASSIGN(std::vector<int64_t> block, read_blocks(call));
  if (i.batch % block[0] != 0 || i.batch / block[0] % block[1] != 0) {
    return call.error(i.batch, " images do not make blocks of ", block[0], " x ", block[1]);
  }
  const int64_t batch = i.batch / block[0] / block[1], h = i.height * block[0], w = i.width * block[1];
  ValueId y = i.x;
  if (i.nchw) {
    PINNACE_ASSIGN(y, call.reshape(y, {block[0], block[1], batch, i.channels, i.height, i.width}));
    PINNACE_ASSIGN(y, call.transpose(y, {2, 3, 4, 0, 5, 1}));
    PINNACE_ASSIGN(y, call.reshape(y, {batch, i.channels, h, w}));
  } else {
    PINNACE_ASSIGN(y, call.reshape(y, {block[0], block[1], batch, i.height, i.width, i.channels}));
    PINNACE_ASSIGN(y, call.transpose(y, {2, 3, 0, 4, 1, 5}));
    PINNACE_ASSIGN(y, call.reshape(y, {batch, h, w, i.channels}));
  }
  return call.finish(0, y);
}

Status map_channel_shuffle(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t groups, call.integer(1));
  PINNACE_ASSIGN(int64_t axis, call.axis(2, call.rank(x)));
  PINNACE_ASSIGN(TensorType type, call.concrete(x));
  const int64_t size = type.shape[static_cast<size_t>(axis)].size;
  if (groups < 1 || size % groups != 0) return call.error(size, " channels do not make ", groups, " groups");
  int64_t outer = 1, inner = 1;
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < type.rank(); ++d) {
    dims.push_back(type.shape[static_cast<size_t>(d)].size);
    if (d < axis) outer *= dims.back();
    if (d > axis) inner *= dims.back();
  }
  PINNACE_ASSIGN(ValueId y, call.reshape(x, {outer, groups, size / groups, inner}));
  PINNACE_ASSIGN(y, call.transpose(y, {0, 2, 1, 3}));
  PINNACE_ASSIGN(y, call.reshape(y, std::move(dims)));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
