/// A libmunge for tests: credentials of this user that nothing protects.
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#pragma GCC visibility push(default)

extern "C" {

int munge_encode(char** credential, void*, const void* text, int length) {
  static const char digits[] = "0123456789abcdef";
  const auto* bytes = static_cast<const unsigned char*>(text);
  char* out = *credential = static_cast<char*>(std::malloc(2 * static_cast<std::size_t>(length) + 1));
  for (int i = 0; i < length; ++i) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  *out = '\0';
  return 0;
}

int munge_decode(const char* credential, void*, void** text, int* length, uid_t* user, gid_t* group) {
  constexpr int kBadFormat = 8;
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  *text = nullptr;
  *user = ::geteuid();
  *group = ::getegid();
  *length = static_cast<int>(std::strlen(credential) / 2);
  if (std::strspn(credential, "0123456789abcdef") != std::strlen(credential)) return kBadFormat;
  auto* out = static_cast<char*>(std::malloc(static_cast<std::size_t>(*length) + 1));
  for (int i = 0; i < *length; ++i)
    out[i] = static_cast<char>(value(credential[2 * i]) * 16 + value(credential[2 * i + 1]));
  *text = out;
  return 0;
}

const char* munge_strerror(int code) {
  return code == 0 ? "Success" : "Invalid credential format";
}

void* munge_ctx_create() {
  return std::malloc(1);
}
void munge_ctx_destroy(void* context) {
  std::free(context);
}
int munge_ctx_set(void*, int, ...) {
  return 0;
}

}  // extern "C"

#pragma GCC visibility pop
