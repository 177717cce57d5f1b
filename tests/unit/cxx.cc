// The parameter macros in C++: what they give is what C gives.
#include <cstdio>
#include <cstring>

#include "zc/zc.h"

namespace
{

int faults = 0;

void check(bool right, const char *what)
{
    if (right) return;
    std::fprintf(stderr, "cxx: %s\n", what);
    faults++;
}

const zc_session_params *first_of_two(const zc_session_params *a, const zc_session_params *b)
{
    return a->size == b->size ? a : nullptr;
}

void session_params()
{
    const int n = 3;
    zc_session_params want;
    std::memset(&want, 0, sizeof want);
    want.size = sizeof want;
    check(first_of_two(ZC_SESSION_PARAMS(), &want)->threads == 0, "no fields");
    want.device = ZC_DEVICE_AUTO;
    want.threads = n - 1;
    want.timeout_ms = 50;
    // Fields in any order, values that are expressions of local variables.
    const zc_session_params got = *static_cast<const zc_session_params *>(
        ZC_SESSION_PARAMS(.timeout_ms = 50, .device = ZC_DEVICE_AUTO, .threads = n - 1));
    check(got.size == want.size && got.threads == want.threads && got.device == want.device &&
              got.timeout_ms == want.timeout_ms && !got.profile && !got.stream,
          "fields by name");
}

// The largest struct, with all of its fields.
void compile_params()
{
    const zc_compile_params got = *static_cast<const zc_compile_params *>(
        ZC_COMPILE_PARAMS(.data_root = nullptr, .dims = nullptr, .dim_count = 1, .shapes = nullptr,
                          .shape_count = 2, .skip_passes = nullptr, .skip_pass_count = 3,
                          .targets = nullptr, .target_count = 4, .profiles = nullptr,
                          .profile_count = 5, .strip_sources = true, .emit_cuda = nullptr,
                          .precision = nullptr, .threads = 6, .rules = nullptr, .rule_count = 7,
                          .skip_rules = nullptr, .skip_rule_count = 8, .force_rules = true,
                          .tune = true, .strict = true, .max_memory = 9, .progress = nullptr,
                          .progress_user = nullptr, .tuned = nullptr, .tune_seconds = 10,
                          .tune_again = true, .by_cost = true, .custom_ops = nullptr,
                          .custom_op_count = 11, .offered = true, .max_error = 12, .allow = nullptr,
                          .allow_count = 13, .samples = nullptr, .sample_count = 14,
                          .pareto = "pareto"));
    check(got.dim_count == 1 && got.threads == 6 && got.max_memory == 9 && got.offered &&
              got.max_error == 12 && got.sample_count == 14 &&
              std::strcmp(got.pareto, "pareto") == 0,
          "all fields");
}

void threads()
{
    zc_threads *threads = nullptr;
    check(zc_threads_create(ZC_THREADS_PARAMS(.spin_us = ZC_SPIN_NONE, .threads = 2), &threads,
                            nullptr) == ZC_OK,
          "zc_threads_create");
    zc_threads_destroy(&threads);
    check(threads == nullptr, "zc_threads_destroy");
}

bool stop(void *user, const char *, size_t, size_t)
{
    ++*static_cast<int *>(user);
    return false;
}

// Through the libraries, with an error and a callback.
void calls()
{
    zc_diag *diag = zc_diag_create();
    zc_session *session = nullptr;
    check(zc_session_create(nullptr, ZC_SESSION_PARAMS(.threads = 2), &session, diag) ==
                  ZC_ERR_ARG &&
              std::strcmp(zc_diag_text(diag, 0), "plan: is NULL") == 0,
          "zc_session_create");
    zc_diag_clear(diag);
    void *plan = nullptr;
    size_t len = 0;
    int stages = 0;
    const char *skip[] = {"all"};
    check(zc_compile_bytes("model", 5,
                           ZC_COMPILE_PARAMS(.skip_passes = skip, .skip_pass_count = 1,
                                             .progress = stop, .progress_user = &stages),
                           &plan, &len, diag) == ZC_ERR_CANCELLED &&
              stages == 1,
          "zc_compile_bytes");
    zc_diag_destroy(&diag);
    check(std::strcmp(zc_version(), ZC_VERSION) == 0, "zc_version");
}

} // namespace

int main()
{
    session_params();
    compile_params();
    threads();
    calls();
    return faults != 0;
}
