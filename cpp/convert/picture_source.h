// The first steps of a Preprocessing: the inputs that a picture becomes, and bytes of pixels out of them, cropped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/picture_form.h"
#include "convert/picture_nodes.h"

namespace pinnace {

/// The picture between two steps: bytes [N, C, H, W] or [N, H, W, C].
struct Picture {
  ValueId id = kNoValue;
  std::string_view order;  ///< "rgb", "bgr", "grey", "rgba", "bgra"
  PictureSize height, width;
  bool channels_last = false;
  int64_t channels() const { return order == "grey" ? 1 : static_cast<int64_t>(order.size()); }
  int64_t row_axis() const { return channels_last ? 1 : 2; }
};

/// What a run must bring for one input that was made here.
struct PictureInput {
  ValueId id;
  std::string what;
};

/// A new symbol with that name, or one like it, as a dimension.
Dim dynamic_dim(Graph& graph, std::string name, int64_t least, int64_t multiple = 1);

class PictureSource {
 public:
  /// place: of the graph's input that is to be made of the picture. sides: height and width, known or symbols.
  /// batch: how many pictures; nothing where the model takes one without that dimension. Where rows have gaps or planes
  /// are several it is nothing or 1.
  PictureSource(Graph& graph, PictureNodes& nodes, const Preprocessing& how, const PictureForm& form, size_t place,
                const Dim (&sides)[2], std::optional<Dim> batch)
      : graph_(graph),
        nodes_(nodes),
        how_(how),
        form_(form),
        place_(place),
        sides_{sides[0], sides[1]},
        batch_(batch) {}

  /// kInvalidArgument: the name of an input is that of another.
  Result<Picture> make() { return form_.planes ? from_planes() : from_pixels(); }
  /// The new inputs, in order. They are not among the graph's yet.
  const std::vector<PictureInput>& inputs() const { return inputs_; }

 private:
  /// An input of bytes.
  Result<ValueId> input(std::string_view suffix, Shape shape, std::string what);
  Dim open(std::string_view what, int64_t least, int64_t multiple = 1) {
    return dynamic_dim(graph_, how_.name + "." + std::string(what), least, multiple);
  }
  std::string sides_text() const;
  /// Rows of `used` bytes each out of a plane of rows with a stride; `rows` and `used` are known where it is not dense.
  /// The plane is an input [rows, stride], or a vector of bytes.
  Result<ValueId> rows_of(std::string_view suffix, std::string what, const Dim& rows, const Dim& used, int64_t stride);
  /// Sides of the picture: known, or as [rows, columns] of `plane` say.
  Status set_sides(Picture& p, ValueId plane);
  /// What is kept of a picture.
  Result<PictureBox> box_of(PictureSize height, PictureSize width);
  Result<Picture> from_pixels();
  Result<Picture> from_planes();
  /// [1, 2, rows, columns] of bytes, V and U or U and V, for each 2 x 2 pixels.
  Result<ValueId> chroma_of(const Picture& p, const std::string& of);
  /// What chroma adds to luma, for the pixels of the box: [1, 3, height, width].
  Result<ValueId> colours_of(ValueId chroma, const ChromaMatrix& m, const PictureBox& box);

  Graph& graph_;
  PictureNodes& nodes_;
  const Preprocessing& how_;
  const PictureForm& form_;
  const size_t place_;
  const Dim sides_[2];
  const std::optional<Dim> batch_;
  std::vector<PictureInput> inputs_;
};

}  // namespace pinnace
