// lower_affine_grid: where the sizes of the image are known, affine_grid becomes the sum over the dimensions of the
// image of its places along one of them times a column of theta, and the last column; back ends that have products and
// sums run it. Of two dimensions: y = (theta[:, :, 2] + x * theta[:, :, 0]) + y * theta[:, :, 1]. Conditions: f32 or
// f64, since affine_grid rounds once. Bound: the rounding of products and sums, which affine_grid has in double.
#include "ops/affine_grid.h"
#include "passes/rewrite.h"

namespace pinnace {
namespace {

class Lowering {
 public:
  Lowering(Rewrite& rewrite, Node& node)
      : rewrite_(rewrite),
        node_(node),
        theta_(rewrite.type(node.inputs[0])),
        grid_(rewrite.type(node.outputs[0])),
        k_(grid_.shape.size() - 2),
        align_(int_or(node, "align_corners", 0) != 0) {}

  bool fits() const {
    if (theta_.dtype != DType::kF32 && theta_.dtype != DType::kF64) return false;
    for (size_t d = 1; d <= k_; ++d) {
      const Dim size = grid_.shape[d];
      if (!size.known() || size.size < 1 || !rewrite_.affords({theta_.dtype, {size}, nullptr})) return false;
    }
    return true;
  }

  /// The node becomes the last addition.
  Status run() {
    PINNACE_ASSIGN(ValueId sum, column(k_));
    for (size_t c = 0; c < k_; ++c) {
      PINNACE_ASSIGN(const ValueId product, along(c));
      if (c + 1 == k_) {
        rewrite_.replace(node_, "add", {sum, product}, {}, node_.source);
      } else {
        Shape shape = rewrite_.type(sum).shape;
        shape[k_ - c] = grid_.shape[k_ - c];
        sum = insert("add", {sum, product}, {}, std::move(shape));
      }
    }
    return {};
  }

 private:
  ValueId insert(std::string_view op, std::vector<ValueId> inputs, decltype(Node::attrs) attrs, Shape shape) {
    return rewrite_.insert_before(node_, op, std::move(inputs), std::move(attrs),
                                  {theta_.dtype, std::move(shape), nullptr}, str_cat(node_.name, ".", op));
  }
  Result<ValueId> integers(std::string_view name, Shape shape, std::span<const double> list) {
    return rewrite_.add_constant(str_cat(node_.name, ".", name), DType::kI64, std::move(shape), list);
  }

  /// Column `c` of theta, [N, 1, ..., k].
  Result<ValueId> column(size_t c) {
    const double number = static_cast<double>(c);
    PINNACE_ASSIGN(const ValueId index, integers("column", {}, {&number, 1}));
    const Dim images = grid_.shape[0], k = grid_.shape.back();
    const ValueId taken = insert("gather", {node_.inputs[0], index}, {{"axis", Attr(int64_t{2})}}, {images, k});
    std::vector<double> axes;
    Shape shape{images};
    for (size_t d = 1; d <= k_; ++d) {
      axes.push_back(static_cast<double>(d));
      shape.push_back(Dim(1));
    }
    shape.push_back(k);
    PINNACE_ASSIGN(const ValueId list, integers("axes", {static_cast<int64_t>(k_)}, axes));
    return insert("unsqueeze", {taken, list}, {}, std::move(shape));
  }

  /// Places along the dimension that column `c` belongs to, the last one for 0, times that column.
  Result<ValueId> along(size_t c) {
    PINNACE_ASSIGN(const ValueId factor, column(c));
    const size_t dimension = k_ - c;
    const int64_t size = grid_.shape[dimension].size;
    Shape constant(c + 2, Dim(1)), shape = rewrite_.type(factor).shape;
    constant[0] = shape[dimension] = Dim(size);
    PINNACE_ASSIGN(
        const ValueId places,
        rewrite_.add_constant(str_cat(node_.name, ".places"), theta_.dtype, std::move(constant),
                              [&](size_t i) { return affine_grid_place(static_cast<int64_t>(i), size, align_); }));
    return insert("mul", {places, factor}, {}, std::move(shape));
  }

  Rewrite& rewrite_;
  Node& node_;
  const TensorType theta_, grid_;
  const size_t k_;  ///< dimensions of the image
  const bool align_;
};

Result<int> run(Graph& graph, const PassContext& context) {
  Rewrite rewrite(graph, context);
  for (Node* node : rewrite.nodes()) {
    if (!rewrite.alive(node) || node->op != "affine_grid") continue;
    Lowering lowering(rewrite, *node);
    if (!lowering.fits()) continue;
    PINNACE_TRY(lowering.run());
  }
  return rewrite.finish();
}

}  // namespace

extern const PassDef lower_affine_grid_pass;
const PassDef lower_affine_grid_pass{"lower_affine_grid", "makes products and sums of affine_grid", 1e-5, run};

}  // namespace pinnace
