// Mutations of text that keep its shape: tokens, bracketed groups and lines are replaced, moved, repeated and nested.
// Random bytes in JSON, in the text form of graphs or in a printed expression end at the parser's first rule almost
// always; these reach what lies behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pinnace::fuzz {

/// `text` after one to four mutations, of at most `max_size` bytes. One time in eight by libFuzzer's own mutations,
/// which know the dictionary. `other` is another input, which parts are taken from; empty if there is none.
std::string mutated_text(std::string_view text, std::string_view other, size_t max_size, unsigned seed);

/// mutated_text in libFuzzer's form.
size_t mutate_text(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t cross_texts(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t max_size,
                   unsigned seed);

}  // namespace pinnace::fuzz
