#include "model.hpp"

#include "text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace rondo::bench {
namespace {

/// Collects tensors in the order of the forward pass.
class layers {
 public:
  void weight(std::string name, std::size_t count) { list_.push_back({std::move(name), count}); }

  void linear(std::string const& name, std::size_t in, std::size_t out) {
    weight(name + ".weight", in * out);
    weight(name + ".bias", out);
  }

  void norm(std::string const& name, std::size_t width) {
    weight(name + ".weight", width);
    weight(name + ".bias", width);
  }

  std::vector<tensor> backward() && {
    std::reverse(list_.begin(), list_.end());
    return std::move(list_);
  }

 private:
  std::vector<tensor> list_;
};

// Radford et al. 2019, the 124 million parameter size; the output layer shares wte.
std::vector<tensor> gpt2() {
  constexpr std::size_t width = 768;
  layers net;
  net.weight("wte.weight", 50257 * width);
  net.weight("wpe.weight", 1024 * width);
  for (int i = 0; i < 12; ++i) {
    auto const block = fmt::format("h.{}.", i);
    net.norm(block + "ln_1", width);
    net.linear(block + "attn.c_attn", width, 3 * width);
    net.linear(block + "attn.c_proj", width, width);
    net.norm(block + "ln_2", width);
    net.linear(block + "mlp.c_fc", width, 4 * width);
    net.linear(block + "mlp.c_proj", 4 * width, width);
  }
  net.norm("ln_f", width);
  return std::move(net).backward();
}

// Devlin et al. 2018, base size, with the pooler.
std::vector<tensor> bert_base() {
  constexpr std::size_t width = 768;
  layers net;
  net.weight("embeddings.word_embeddings.weight", 30522 * width);
  net.weight("embeddings.position_embeddings.weight", 512 * width);
  net.weight("embeddings.token_type_embeddings.weight", 2 * width);
  net.norm("embeddings.LayerNorm", width);
  for (int i = 0; i < 12; ++i) {
    auto const block = fmt::format("encoder.layer.{}.", i);
    for (auto const* part : {"query", "key", "value"})
      net.linear(fmt::format("{}attention.self.{}", block, part), width, width);
    net.linear(block + "attention.output.dense", width, width);
    net.norm(block + "attention.output.LayerNorm", width);
    net.linear(block + "intermediate.dense", width, 4 * width);
    net.linear(block + "output.dense", 4 * width, width);
    net.norm(block + "output.LayerNorm", width);
  }
  net.linear("pooler.dense", width, width);
  return std::move(net).backward();
}

// He et al. 2015, table 1, 50 layers, with the projection shortcuts.
std::vector<tensor> resnet50() {
  layers net;
  auto const convolution = [&](std::string const& name, std::size_t in, std::size_t out, std::size_t kernel) {
    net.weight(name + ".weight", in * out * kernel * kernel);
  };
  convolution("conv1", 3, 64, 7);
  net.norm("bn1", 64);
  std::size_t in = 64;
  int stage = 0;
  for (int const depth : {3, 4, 6, 3}) {
    ++stage;
    std::size_t const inner = std::size_t{32} << stage;
    std::size_t const out = 4 * inner;
    for (int i = 0; i < depth; ++i) {
      auto const block = fmt::format("layer{}.{}.", stage, i);
      convolution(block + "conv1", in, inner, 1);
      net.norm(block + "bn1", inner);
      convolution(block + "conv2", inner, inner, 3);
      net.norm(block + "bn2", inner);
      convolution(block + "conv3", inner, out, 1);
      net.norm(block + "bn3", out);
      if (i == 0) {
        convolution(block + "downsample.0", in, out, 1);
        net.norm(block + "downsample.1", out);
      }
      in = out;
    }
  }
  net.linear("fc", in, 1000);
  return std::move(net).backward();
}

// Grattafiori et al. 2024, table 3, the 8 billion parameter size: grouped-query attention with 8 key-value heads.
std::vector<tensor> llama3_8b() {
  constexpr std::size_t vocabulary = 128256, width = 4096, key_value = 1024, inner = 14336;
  layers net;
  net.weight("embed_tokens.weight", vocabulary * width);
  for (int i = 0; i < 32; ++i) {
    auto const block = fmt::format("layers.{}.", i);
    net.weight(block + "input_layernorm.weight", width);
    net.weight(block + "self_attn.q_proj.weight", width * width);
    net.weight(block + "self_attn.k_proj.weight", width * key_value);
    net.weight(block + "self_attn.v_proj.weight", width * key_value);
    net.weight(block + "self_attn.o_proj.weight", width * width);
    net.weight(block + "post_attention_layernorm.weight", width);
    net.weight(block + "mlp.gate_proj.weight", width * inner);
    net.weight(block + "mlp.up_proj.weight", width * inner);
    net.weight(block + "mlp.down_proj.weight", inner * width);
  }
  net.weight("norm.weight", width);
  net.weight("lm_head.weight", vocabulary * width);
  return std::move(net).backward();
}

}  // namespace

std::vector<std::string> model_names() { return {"gpt2", "resnet50", "bert-base", "llama3-8b"}; }

std::vector<tensor> gradients(std::string_view model) {
  if (model == "gpt2") return gpt2();
  if (model == "resnet50") return resnet50();
  if (model == "bert-base") return bert_base();
  if (model == "llama3-8b") return llama3_8b();
  throw usage_error(fmt::format("There is no model '{}': choose {}.", model, join_words(model_names(), "or")));
}

std::size_t total_count(std::span<tensor const> tensors) {
  std::size_t total = 0;
  for (auto const& t : tensors) total += t.count;
  return total;
}

std::vector<std::size_t> buckets(std::span<tensor const> tensors, std::size_t element_bytes, std::size_t bucket_bytes) {
  std::vector<std::size_t> counts;
  bool open = false;
  for (auto const& t : tensors) {
    if (open)
      counts.back() += t.count;
    else
      counts.push_back(t.count);
    open = counts.back() * element_bytes < bucket_bytes;
  }
  return counts;
}

}  // namespace rondo::bench
