// What the files share that show kernels to Python. Arrays are validated by the caller: here they only have a type and a
// layout. Each of these files binds kernels of one kind. Together they would be more than a compiler inlines well.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace labelsense {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int ndim>
using Array = nb::ndarray<T, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
using Release = nb::call_guard<nb::gil_scoped_release>;
using Starts = Array<const int64_t, 1>;
using Indices = Array<const int32_t, 1>;
using Values = Array<const float, 1>;

// Hands what `owner` holds to NumPy, which deletes it when done.
template <class T, class Owner>
nb::ndarray<nb::numpy, T, nb::ndim<1>> hand_over(T* data, size_t size, Owner owner) {
    auto* kept = new Owner(std::move(owner));
    nb::capsule capsule(kept, [](void* p) noexcept { delete static_cast<Owner*>(p); });
    return {data, {size}, capsule};
}

template <class T>
auto hand_over(std::vector<T> numbers) {
    T* data = numbers.data();
    size_t size = numbers.size();
    return hand_over(data, size, std::move(numbers));
}

void bind_hadamard(nb::module_& module);
void bind_dense(nb::module_& module);
void bind_whitened(nb::module_& module);
void bind_among(nb::module_& module);
void bind_products(nb::module_& module);
void bind_refinement(nb::module_& module);
void bind_text(nb::module_& module);

}  // namespace labelsense
