/* ZC_SESSION_PARAMS and ZC_COMPILE_PARAMS: parameters by name, the others 0, in C and in C++.
 *
 *   zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 2, .device = ZC_DEVICE_AUTO), ...)
 *
 * C: a C99 compound literal, which lives as long as the block around it. C++ (11 and later): a
 * temporary, which lives to the end of the call that it is an argument of; fields in any order;
 * inside functions only. Without the macros: zero the struct, set its size and what else you need.
 */
#ifndef ZC_PARAMS_H
#define ZC_PARAMS_H

#ifndef __cplusplus

#define ZC_PARAMS(type, ...) (&(type){.size = sizeof(type), __VA_ARGS__})

#else

extern "C++" {
template <class Type> struct zc_params {
    Type value;
    operator const Type *() const
    {
        return &value;
    }
};
}

/* p.field = value for each argument; arguments that were not given are empty. One that is left over
 * does not compile. */
#define ZC_PARAMS_SET8(p, a, b, c, d, e, f, g, h)                                                  \
    (void)(p a), (void)(p b), (void)(p c), (void)(p d), (void)(p e), (void)(p f), (void)(p g),     \
        (void)(p h)
#define ZC_PARAMS_SET(p, a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7, c0, c1,   \
                      c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7, e0, e1, e2, e3, e4,  \
                      e5, e6, e7, f0, f1, f2, f3, f4, f5, f6, f7, over, ...)                       \
    ZC_PARAMS_SET8(p, a0, a1, a2, a3, a4, a5, a6, a7),                                             \
        ZC_PARAMS_SET8(p, b0, b1, b2, b3, b4, b5, b6, b7),                                         \
        ZC_PARAMS_SET8(p, c0, c1, c2, c3, c4, c5, c6, c7),                                         \
        ZC_PARAMS_SET8(p, d0, d1, d2, d3, d4, d5, d6, d7),                                         \
        ZC_PARAMS_SET8(p, e0, e1, e2, e3, e4, e5, e6, e7),                                         \
        ZC_PARAMS_SET8(p, f0, f1, f2, f3, f4, f5, f6, f7), (void)(0 over)
#define ZC_PARAMS_FILL(...)                                                                        \
    ZC_PARAMS_SET(__VA_ARGS__, , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , \
                  , , , , , , , , , , , , , , )
#define ZC_PARAMS(type, ...)                                                                       \
    ([&]() {                                                                                       \
        zc_params<type> zc_made = zc_params<type>();                                               \
        zc_made.value.size = sizeof(type);                                                         \
        ZC_PARAMS_FILL(zc_made.value, __VA_ARGS__);                                                \
        return zc_made;                                                                            \
    }())

#endif
#endif
