// The Python face of the kernels: one module for each instruction set; MODULE_NAME tells them apart.
#include "bindings.hpp"

NB_MODULE(MODULE_NAME, module) {
    using namespace labelsense;
    nb::set_leak_warnings(false);  // what a program still holds when it ends is no leak, and no news to its user
    bind_hadamard(module);
    bind_dense(module);
    bind_whitened(module);
    bind_among(module);
    bind_products(module);
    bind_refinement(module);
    bind_text(module);
    module.def("has_avx2", [] {
#if defined(LABELSENSE_HAS_V3)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
#else
        return false;
#endif
    });
}
