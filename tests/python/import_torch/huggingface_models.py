"""Architectures of Hugging Face's transformers in small sizes, with random weights: make("llama") gives (module,
inputs by name). Whatever has nothing to do with a model's size is as its configuration has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pinnace as pn
import torch
import torchvision_ops  # noqa: F401  (before transformers: it declares what torchvision's missing C extension would)
import transformers
from torch import Tensor, nn

Inputs = dict[str, Tensor]
VOCABULARY = 99
TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
TOKENS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA: dict[str, Any] = {**TEXT, **TOKENS, "num_key_value_heads": 2}
GEMMA: dict[str, Any] = {**LLAMA, "head_dim": 8}
ENCODER_DECODER: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    **TOKENS,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": 2,
}
IMAGE: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
SPEECH: dict[str, Any] = {
    **TEXT,
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}


def text(batch: int, length: int, seed: int) -> Inputs:
    """Tokens and their mask, which ends earlier in all rows but the first."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCABULARY, (batch, length), generator=random)
    mask = torch.ones_like(ids)
    mask[1:, length - length // 4 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def tokens(batch: int, length: int, seed: int) -> Inputs:
    return {"input_ids": text(batch, length, seed)["input_ids"]}


def translation(batch: int, length: int, seed: int) -> Inputs:
    return {**text(batch, length, seed), "decoder_input_ids": text(batch, length - 4, seed + 1)["input_ids"]}


def image(batch: int, length: int, seed: int) -> Inputs:
    return {"pixel_values": torch.randn(batch, 3, 32, 32, generator=torch.Generator().manual_seed(seed))}


def larger_image(batch: int, length: int, seed: int) -> Inputs:
    return {"pixel_values": torch.randn(batch, 3, 64, 64, generator=torch.Generator().manual_seed(seed))}


def wave(batch: int, length: int, seed: int) -> Inputs:
    return {"input_values": torch.randn(batch, 100 * length, generator=torch.Generator().manual_seed(seed))}


def speech(batch: int, length: int, seed: int) -> Inputs:
    features = torch.randn(batch, 80, 60, generator=torch.Generator().manual_seed(seed))
    return {"input_features": features, "decoder_input_ids": text(batch, length - 4, seed)["input_ids"]}


def image_and_text(batch: int, length: int, seed: int) -> Inputs:
    return {**text(batch, length, seed), **image(batch, length, seed)}


# By name of an input the names of its first dimensions, where these vary.
DIMS: dict[str, tuple[str | pn.Dim, ...]] = {
    "input_ids": ("batch", "length"),
    "attention_mask": ("batch", "length"),
    "decoder_input_ids": ("batch", "target"),
    "pixel_values": ("batch",),
    "input_values": ("batch", pn.Dim("samples", 400)),  # whose convolutions leave more than one step
    "input_features": ("batch",),
}


@dataclass(frozen=True)
class Architecture:
    """One class of models."""

    model: str  # of transformers
    config: str
    sizes: dict[str, Any]
    inputs: Callable[[int, int, int], Inputs] = text  # of a batch, a length and a seed


def dynamic_dims(inputs: Inputs) -> dict[str, dict[int, str | pn.Dim]]:
    """dynamic_shapes for them."""
    return {name: dict(enumerate(DIMS[name])) for name in inputs}


def make(name: str) -> tuple[nn.Module, Inputs]:
    """The module in eval mode, and inputs of its; torch's random numbers are as before."""
    architecture = ARCHITECTURES[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, architecture.config)(**architecture.sizes)
        module = getattr(transformers, architecture.model)(config).eval()
        # Fresh weights are small, and outputs would hardly depend on the inputs.
        for value in module.parameters():
            if value.dim() > 1:
                value.data.mul_(2.5)
    return module, architecture.inputs(2, 12, 1)


_A = Architecture
ARCHITECTURES: dict[str, Architecture] = {
    # encoders of text
    "bert": _A("BertModel", "BertConfig", TEXT),
    "roberta": _A("RobertaForSequenceClassification", "RobertaConfig", {**TEXT, "pad_token_id": 1}),
    "distilbert": _A(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "albert": _A("AlbertModel", "AlbertConfig", {**TEXT, "embedding_size": 16}),
    "electra": _A("ElectraForTokenClassification", "ElectraConfig", {**TEXT, "embedding_size": 16}),
    "deberta_v2": _A("DebertaV2Model", "DebertaV2Config", TEXT),
    "mpnet": _A("MPNetModel", "MPNetConfig", {**TEXT, "pad_token_id": 1}),
    "xlm_roberta": _A("XLMRobertaForQuestionAnswering", "XLMRobertaConfig", {**TEXT, "pad_token_id": 1}),
    "modernbert": _A("ModernBertModel", "ModernBertConfig", {**TEXT, **TOKENS, "cls_token_id": 1, "sep_token_id": 2}),
    "convbert": _A("ConvBertModel", "ConvBertConfig", {**TEXT, "embedding_size": 32}),
    "deberta": _A(
        "DebertaForMaskedLM", "DebertaConfig", {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
    ),
    "xlnet": _A(
        "XLNetLMHeadModel",
        "XLNetConfig",
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
    ),
    "big_bird": _A("BigBirdModel", "BigBirdConfig", {**TEXT, "attention_type": "original_full"}),
    "nystromformer": _A(
        "NystromformerModel", "NystromformerConfig", {**TEXT, "num_landmarks": 4, "segment_means_seq_len": 4}
    ),
    "yoso": _A("YosoModel", "YosoConfig", {**TEXT, "use_expectation": True}),
    "data2vec": _A("Data2VecTextModel", "Data2VecTextConfig", {**TEXT, "pad_token_id": 1}),
    # decoders of text
    "gpt2": _A(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **TOKENS},
    ),
    "gpt_neo": _A(
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 8,
            "max_position_embeddings": 64,
            **TOKENS,
        },
    ),
    "gpt_neox": _A("GPTNeoXForCausalLM", "GPTNeoXConfig", {**TEXT, **TOKENS}),
    "opt": _A("OPTForCausalLM", "OPTConfig", {**TEXT, **TOKENS, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bloom": _A(
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4, **TOKENS},
    ),
    "llama": _A("LlamaForCausalLM", "LlamaConfig", LLAMA),
    "mistral": _A("MistralForCausalLM", "MistralConfig", {**LLAMA, "sliding_window": 8}),
    "mixtral": _A("MixtralForCausalLM", "MixtralConfig", {**LLAMA, "num_local_experts": 4}),
    "qwen2": _A("Qwen2ForCausalLM", "Qwen2Config", LLAMA),
    "qwen3": _A("Qwen3ForCausalLM", "Qwen3Config", GEMMA),
    "gemma": _A("GemmaForCausalLM", "GemmaConfig", GEMMA),
    "gemma2": _A("Gemma2ForCausalLM", "Gemma2Config", {**GEMMA, "sliding_window": 8}),
    "gemma3": _A("Gemma3ForCausalLM", "Gemma3TextConfig", {**GEMMA, "sliding_window": 8}),
    "phi": _A("PhiForCausalLM", "PhiConfig", {**TEXT, **TOKENS}),
    "phi3": _A("Phi3ForCausalLM", "Phi3Config", LLAMA),
    "falcon": _A("FalconForCausalLM", "FalconConfig", {**TEXT, **TOKENS}),
    "olmo2": _A("Olmo2ForCausalLM", "Olmo2Config", LLAMA),
    "mamba": _A(
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, **TOKENS},
        tokens,
    ),
    "mamba2": _A(
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "head_dim": 8,
            "num_heads": 8,
            "n_groups": 2,
            **TOKENS,
        },
        tokens,
    ),
    "rwkv": _A(
        "RwkvForCausalLM",
        "RwkvConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "attention_hidden_size": 32,
            "intermediate_size": 64,
        },
        tokens,
    ),
    "granite": _A("GraniteForCausalLM", "GraniteConfig", LLAMA),
    "stablelm": _A("StableLmForCausalLM", "StableLmConfig", LLAMA),
    "starcoder2": _A("Starcoder2ForCausalLM", "Starcoder2Config", LLAMA),
    "persimmon": _A("PersimmonForCausalLM", "PersimmonConfig", {**TEXT, **TOKENS}),
    "nemotron": _A("NemotronForCausalLM", "NemotronConfig", LLAMA),
    "cohere": _A("CohereForCausalLM", "CohereConfig", LLAMA),
    "glm4": _A("Glm4ForCausalLM", "Glm4Config", GEMMA),
    "smollm3": _A("SmolLM3ForCausalLM", "SmolLM3Config", LLAMA),
    "deepseek_v3": _A(
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **LLAMA,
            "num_key_value_heads": 4,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
        },
    ),
    "qwen3_moe": _A(
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {**GEMMA, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    ),
    "gpt_oss": _A(
        "GptOssForCausalLM",
        "GptOssConfig",
        {**GEMMA, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    ),
    "gptj": _A(
        "GPTJForCausalLM",
        "GPTJConfig",
        {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 8},
    ),
    "xglm": _A(
        "XGLMForCausalLM",
        "XGLMConfig",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "num_layers": 2,
            "attention_heads": 4,
            "ffn_dim": 64,
            "max_position_embeddings": 64,
        },
    ),
    "biogpt": _A("BioGptForCausalLM", "BioGptConfig", {**TEXT, **TOKENS}),
    # encoders and decoders
    "t5": _A(
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        translation,
    ),
    "bart": _A("BartForConditionalGeneration", "BartConfig", ENCODER_DECODER, translation),
    "marian": _A("MarianMTModel", "MarianConfig", ENCODER_DECODER, translation),
    "mbart": _A("MBartForConditionalGeneration", "MBartConfig", ENCODER_DECODER, translation),
    "pegasus": _A("PegasusForConditionalGeneration", "PegasusConfig", ENCODER_DECODER, translation),
    "whisper": _A(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **{key: value for key, value in ENCODER_DECODER.items() if key not in ("max_position_embeddings",)},
            "max_source_positions": 30,
            "max_target_positions": 64,
        },
        speech,
    ),
    # images
    "vit": _A("ViTForImageClassification", "ViTConfig", IMAGE, image),
    "deit": _A("DeiTModel", "DeiTConfig", IMAGE, image),
    "swin": _A(
        "SwinForImageClassification",
        "SwinConfig",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        image,
    ),
    "convnext": _A(
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 2, 1]},
        image,
    ),
    "resnet": _A(
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1]},
        image,
    ),
    "dinov2": _A("Dinov2Model", "Dinov2Config", {**IMAGE, "mlp_ratio": 2}, image),
    "segformer": _A(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "hidden_sizes": [8, 16, 16, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
        },
        larger_image,
    ),
    "beit": _A("BeitModel", "BeitConfig", IMAGE, image),
    "dinov3": _A("DINOv3ViTModel", "DINOv3ViTConfig", {**IMAGE, "num_register_tokens": 2}, image),
    "hiera": _A(
        "HieraModel",
        "HieraConfig",
        {"embed_dim": 8, "image_size": [64, 64], "depths": [1, 1, 1, 1], "num_heads": [1, 2, 4, 8]},
        larger_image,
    ),
    "mobilevit": _A(
        "MobileViTModel",
        "MobileViTConfig",
        {
            "image_size": 64,
            "hidden_sizes": [16, 24, 32],
            "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
            "num_attention_heads": 4,
        },
        larger_image,
    ),
    "swinv2": _A(
        "Swinv2Model",
        "Swinv2Config",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        image,
    ),
    "yolos": _A(
        "YolosForObjectDetection",
        "YolosConfig",
        {**IMAGE, "image_size": [32, 32], "num_detection_tokens": 5, "use_mid_position_embeddings": False},
        image,
    ),
    # sound
    "wav2vec2": _A("Wav2Vec2ForCTC", "Wav2Vec2Config", SPEECH, wave),
    "wavlm": _A("WavLMModel", "WavLMConfig", SPEECH, wave),
    # images with text
    "clip": _A(
        "CLIPModel",
        "CLIPConfig",
        {"text_config": {**TEXT, **TOKENS}, "vision_config": IMAGE, "projection_dim": 16},
        image_and_text,
    ),
    "siglip": _A(
        "SiglipModel", "SiglipConfig", {"text_config": {**TEXT, **TOKENS}, "vision_config": IMAGE}, image_and_text
    ),
    "blip": _A(
        "BlipForImageTextRetrieval",
        "BlipConfig",
        {
            "text_config": {**TEXT, **TOKENS, "encoder_hidden_size": 32},
            "vision_config": IMAGE,
            "projection_dim": 16,
            "image_text_hidden_size": 16,
        },
        image_and_text,
    ),
}
