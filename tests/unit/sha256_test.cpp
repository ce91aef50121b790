#include <rondo/detail/sha256.hpp>

#include <gtest/gtest.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <random>
#include <string>

namespace {

using namespace rondo::detail;

std::string hex(digest const& d) {
  std::string text;
  for (auto const byte : d) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha(std::string_view bytes) { return hex(sha256{}.update(bytes).finish()); }
std::string mac(std::string_view key, std::string_view bytes) { return hex(hmac_sha256(key, bytes)); }

std::string random_bytes(std::mt19937& random, std::size_t n) {
  std::string bytes(n, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(sha256, fips_180_4_examples) {
  EXPECT_EQ(sha(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256, rfc_4231_examples) {
  EXPECT_EQ(mac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(sha256, agrees_with_openssl_around_every_block_edge) {
  std::mt19937 random(1);
  for (std::size_t n = 0; n <= 260; ++n) {
    auto const bytes = random_bytes(random, n);
    digest expected;
    SHA256(reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size(), expected.data());
    EXPECT_EQ(sha(bytes), hex(expected)) << n;
  }
}

TEST(sha256, pieces_and_whole_agree) {
  std::mt19937 random(2);
  auto const bytes = random_bytes(random, 1000);
  sha256 pieces;
  for (std::size_t at = 0, n = 0; at < bytes.size(); at += n, n = random() % 90)
    pieces.update(std::string_view(bytes).substr(at, n));
  EXPECT_EQ(hex(pieces.finish()), sha(bytes));
}

TEST(sha256, hmac_agrees_with_openssl_for_every_key_length) {
  std::mt19937 random(3);
  for (std::size_t n = 0; n <= 140; ++n) {
    auto const key = random_bytes(random, n);
    auto const bytes = random_bytes(random, random() % 300);
    digest expected;
    unsigned length = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<unsigned char const*>(bytes.data()),
         bytes.size(), expected.data(), &length);
    ASSERT_EQ(length, expected.size());
    EXPECT_EQ(mac(key, bytes), hex(expected)) << n;
  }
}

TEST(sha256, secrets_are_compared_whole) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("bbc", "abc"));
  EXPECT_FALSE(same_secret("abc", "ab"));
}

}  // namespace
