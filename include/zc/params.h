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

/* p.field = value for each argument; arguments that were not given are empty. */
#define ZC_PARAMS_SET(p, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, q, r, s, t, u, v, w, x, y,   \
                      z, A, B, C, D, E, F, G, ...)                                                 \
    (void)(p a), (void)(p b), (void)(p c), (void)(p d), (void)(p e), (void)(p f), (void)(p g),     \
        (void)(p h), (void)(p i), (void)(p j), (void)(p k), (void)(p l), (void)(p m), (void)(p n), \
        (void)(p o), (void)(p q), (void)(p r), (void)(p s), (void)(p t), (void)(p u), (void)(p v), \
        (void)(p w), (void)(p x), (void)(p y), (void)(p z), (void)(p A), (void)(p B), (void)(p C), \
        (void)(p D), (void)(p E), (void)(p F), (void)(p G)
#define ZC_PARAMS_FILL(...)                                                                        \
    ZC_PARAMS_SET(__VA_ARGS__, , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , , )
#define ZC_PARAMS(type, ...)                                                                       \
    ([&]() {                                                                                       \
        zc_params<type> zc_made = zc_params<type>();                                               \
        zc_made.value.size = sizeof(type);                                                         \
        ZC_PARAMS_FILL(zc_made.value, __VA_ARGS__);                                                \
        return zc_made;                                                                            \
    }())

#endif
#endif
