// The code of fmt, compiled once: Debian has no static library of it, and the header-only form takes seconds in every
// source.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// The templates that fmt's headers expect in its library; the list is that of its versions 9 to 12.
template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API auto thousands_sep_impl(locale_ref loc) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref loc) -> char;
template FMT_API void buffer<char>::append(const char* begin, const char* end);
#if FMT_VERSION < 110000
template FMT_API void vformat_to(buffer<char>& out, string_view text, basic_format_args<buffer_context<char>> values,
                                 locale_ref loc);
#endif

}  // namespace detail
FMT_END_NAMESPACE
