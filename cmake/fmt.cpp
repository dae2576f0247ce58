// The functions of fmt, compiled once for all that format: its header-only form compiles them in every file,
// three seconds of each. Debian has them as a shared library only, which whoever loads ours would need to
// have.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// Templates that <fmt/format.h> declares and does not define.
template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);
template FMT_API std::locale locale_ref::get<std::locale>() const;

}  // namespace detail
FMT_END_NAMESPACE
